"""Posteriors without deep learning: classifiers on features, fitted to the labels as they are, noise and all."""
