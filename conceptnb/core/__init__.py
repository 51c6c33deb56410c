"""What the paper defines: concepts, environments, distributions, mixing, scores."""
