"""From a folder of images with labels to concept directions: change the first lines, and run it."""

from conceptnb import plotting
from conceptnb.embeddings.own_images import learn_directions, pixel_components, read_images

FOLDER = "pictures"  # all images of one size
LABELS = "pictures/labels.csv"  # a column "file", and one for each thing that can be said
EMBED = pixel_components  # or any function: 8-bit images (n, height, width, 3) -> (n, dimensions)

if __name__ == "__main__":
    images, labels = read_images(FOLDER, LABELS)
    report = learn_directions(images, labels, embed=EMBED)
    print(report.summary().to_string(index=False))
    print(*report.warnings or ["no warnings"], sep="\n")
    plotting.reports.valuations_by_value(report).savefig("directions.png")
