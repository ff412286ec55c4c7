"""A contrast over a knob of the task: what a longer corridor costs."""

from lcd.scores.contrasts import FORMULAS, Contrast

LENGTH = Contrast(
    name="length",
    sign="λ",
    asks="what a longer corridor costs",
    axis="knobs.length",
    baseline=4,
    variants=(6, 8),
    formulas={"loss": FORMULAS["loss"]},
)
