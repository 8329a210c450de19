"""How every figure looks: colours that colour-blind readers can tell apart, sizes for a phone.

A page shows a figure on white, and in the dark theme inverted, but for those with a photograph,
which have no background. On a phone a figure `WIDTH` wide
shrinks to a little over a third, so no text should be below `SMALL`.
"""

from matplotlib.rcsetup import cycler

# The Okabe-Ito palette.
BLUE, ORANGE, GREEN, VERMILION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
SKY, PURPLE, YELLOW = "#56B4E9", "#CC79A7", "#F0E442"
INK, GREY, PALE = "#222222", "#767676", "#F4F4F4"
CYCLE = [BLUE, ORANGE, GREEN, VERMILION, SKY, PURPLE, INK]

# Maps of colours: for signed values (0 is white), and for values from 0 up.
SIGNED, POSITIVE = "RdBu_r", "cividis"

WIDTH = 6.4  # inches: the width of the text on a page
TEXT, SMALL = 11, 9  # points

STYLE = {
    "axes.axisbelow": True,
    "axes.edgecolor": GREY,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.labelsize": TEXT,
    "axes.prop_cycle": cycler(color=CYCLE),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": TEXT,  # for naming panels; a figure's title is its caption
    "figure.constrained_layout.use": True,
    "figure.dpi": 144,
    "figure.facecolor": "white",
    "figure.figsize": (WIDTH, WIDTH / 1.8),
    "font.size": TEXT,
    "grid.color": "#E2E2E2",
    "grid.linewidth": 0.8,
    "image.cmap": POSITIVE,
    "image.interpolation": "nearest",
    "legend.fontsize": TEXT - 1,
    "legend.frameon": False,
    "lines.linewidth": 2,
    "lines.markersize": 6,
    "mathtext.fontset": "cm",
    "savefig.facecolor": "white",
    "svg.hashsalt": "adjoint_lib",  # so that a figure drawn twice gives the same file
    "text.color": INK,
    "xtick.color": INK,
    "xtick.labelsize": TEXT - 1,
    "ytick.color": INK,
    "ytick.labelsize": TEXT - 1,
}


def use() -> None:
    """Set the style for everything drawn from here on, as for a drawing written out in a cell."""
    import matplotlib.pyplot as plt

    plt.rcParams.update(STYLE)
