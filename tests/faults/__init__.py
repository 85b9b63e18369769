"""Planted faults: each breaks smelt in one place, and some test must notice.

``python -m tests.faults`` plants them one after another in a copy of the checkout and runs tests there;
``catalogue`` lists them.
"""
