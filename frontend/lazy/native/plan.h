/* A plan: plan.c makes it, steps.c runs it. */

#ifndef SMELT_PLAN_H
#define SMELT_PLAN_H

#include "core.h"

/* As in steps.py. */
#define SPREADS 1
#define REPEATS 2
#define SEVERAL 4

#define KEPT 1   /* its value is wanted after the run */
#define SHORT 2  /* a broadcast that need not be made: what reads it takes its operand */

typedef struct {
    PyObject_HEAD
    Py_ssize_t n, n_codes, n_leaves;
    Node **nodes;         /* owned */
    PyObject **prepared;  /* owned; those of a plan that is not plain are not there */
    PyObject **leaves;    /* owned: buffers */
    int *first, *codes;   /* operands of node i: codes[first[i]] up to codes[first[i + 1]]; from 0 on a node, else ~leaf */
    long long *inputs;    /* the same for the key: equal numbers are equal operands; above, the number of the result */
    int *uses;
    char *flags;
    char plain;
    double work, seconds;
    Py_ssize_t ops;
    PyObject *owner;
} Plan;

#define IS_SET(object) ((object) != NULL && (object) != Py_None)

/* Whether an evaluation has the node in work: its list is emptied at the end. */
static inline int is_owned(Node *node)
{
    return node->owner != NULL && PyList_CheckExact(node->owner) && PyList_GET_SIZE(node->owner);
}

/* steps.c */
SHARED PyObject *plan_run(Plan *self, PyObject *unused);
SHARED PyObject *plan_claim(Plan *self, PyObject *owned);
SHARED PyObject *plan_values(Plan *self, PyObject *places);
SHARED PyObject *plan_give(Plan *self, PyObject *args);

#endif
