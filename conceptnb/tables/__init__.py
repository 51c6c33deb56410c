"""Stored runs read for pages: data frames, the paper's numbers beside ours, the claims."""
