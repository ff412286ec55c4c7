"""MiniGrid and BabyAI: grid worlds whose symbolic observations are masks that nobody has to draw."""
