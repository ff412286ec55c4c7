"""The flow front-end: perceptual groups learned from motion, without rewards (figure 2 of the paper)."""
