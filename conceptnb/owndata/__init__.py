"""Your own data: tables of environments, folders of images, lists of questions."""
