"""Bytes of files into NumPy arrays, a module a format, trusting nothing that a file says of itself.

Memory is taken for elements that the file has, not for those that a header announces; headers are matched against
what is written by those who define the formats, not evaluated. What is wrong with a file is a FileFormatError without
its name.
"""
