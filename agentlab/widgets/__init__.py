"""Widgets: the Python halves, one file each. Their front ends are built from widgets/ into static/."""
