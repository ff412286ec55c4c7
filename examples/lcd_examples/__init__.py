"""One example of everything that can be added to LCD from outside, each in a file of its own."""
