"""The rules of branches and loops: one file holds all of an op's, `common` what they share.

==================  ==========================  ==============================  ==================================
                    over a batch                reverse mode                    transposed
==================  ==========================  ==============================  ==================================
`cond`              a branch, or all of them    residuals are more results      a branch over transposed functions
`while_loop`        masked where elements end   tangents in a second loop       not: the number of steps is unknown
                    at different steps
`scan`              a scan                      residuals are stacked           a scan backwards
==================  ==========================  ==============================  ==================================
"""
