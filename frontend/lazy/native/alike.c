/* Arguments that are like those of an earlier call: `alike.py` in C. */

#include "core.h"

typedef struct {
    PyObject *expected, *found;
    Py_ssize_t at; /* the place of the next leaf */
    PyObject **seen; /* a table of the arrays met, where each is to be another one; else NULL */
    size_t room; /* of the table, a power of two */
} Walk;

static int matches(PyObject *pattern, PyObject *x, Walk *walk);

/* An array: 1 if its type is as expected, and it has a value, which is noted; 0 if not; -1 with an error. */
static int matches_array(PyObject *x, Walk *walk)
{
    PyObject *ref = Py_IS_TYPE(x, array_type) ? SLOT(x, ref_at) : NULL, *wanted, *aval;
    if (ref != NULL)
        Py_INCREF(ref);
    else if ((ref = PyObject_GetAttr(x, str_ref)) == NULL)
        return -1;
    int same = 0;
    Py_ssize_t i = PyLong_AsSsize_t(PyTuple_GET_ITEM(ref, 1));
    Node *node = (Node *)PyTuple_GET_ITEM(ref, 0);
    aval = PyTuple_GET_ITEM(node->avals, i);
    wanted = PyList_GET_ITEM(walk->expected, walk->at);
    if (aval == wanted)
        same = 1;
    else if (Py_IS_TYPE(wanted, aval_type)) {
        Py_INCREF(aval);
        Py_INCREF(wanted); /* what compares them may be Python's */
        same = PyObject_RichCompareBool(aval, wanted, Py_EQ);
        Py_DECREF(wanted);
        if (same != 1 || PyList_SetItem(walk->expected, walk->at, aval) < 0) { /* which takes the reference */
            if (same != 1)
                Py_DECREF(aval);
            else
                same = -1;
        }
    }
    if (same == 1) {
        if (node->values == NULL || !PyList_Check(node->values) || i >= PyList_GET_SIZE(node->values))
            same = 0;
        else if (PyList_Append(walk->found, PyList_GET_ITEM(node->values, i)) < 0)
            same = -1;
    }
    Py_DECREF(ref);
    return same;
}

/* Whether an array was met before; if not, it is noted. */
static int met(PyObject *x, Walk *walk)
{
    size_t at = ((size_t)x >> 4) * 0x9E3779B1u;
    for (;; at++) {
        PyObject **place = &walk->seen[at & (walk->room - 1)];
        if (*place == x)
            return 1;
        if (*place == NULL) {
            *place = x;
            return 0;
        }
    }
}

static int matches_leaf(PyObject *x, Walk *walk)
{
    if (walk->at >= PyList_GET_SIZE(walk->expected))
        return 0;
    int same = PyObject_TypeCheck(x, array_type);
    if (same && walk->seen != NULL && met(x, walk))
        return 0;
    if (same)
        same = matches_array(x, walk);
    else {
        PyObject *wanted = PyList_GET_ITEM(walk->expected, walk->at);
        if (!Py_IS_TYPE(x, Py_TYPE(wanted)))
            return 0;
        if (PyFloat_CheckExact(x)) {
            double one = PyFloat_AS_DOUBLE(x), other = PyFloat_AS_DOUBLE(wanted);
            same = memcmp(&one, &other, sizeof one) == 0;
        }
        else if (x == Py_None)
            same = 1;
        else if (PyLong_CheckExact(x) || PyBool_Check(x) || PyUnicode_CheckExact(x))
            same = PyObject_RichCompareBool(x, wanted, Py_EQ);
        else
            return 0;
    }
    walk->at++;
    return same;
}

/* Whether the attributes of an object are the same objects. */
static int has_attributes(PyObject *x, PyObject *wanted)
{
    PyObject **own = _PyObject_GetDictPtr(x), *name, *value;
    Py_ssize_t n = own == NULL || *own == NULL ? 0 : PyDict_GET_SIZE(*own), at = 0;
    if (n != PyDict_GET_SIZE(wanted))
        return 0;
    while (n && PyDict_Next(wanted, &at, &name, &value)) { /* names are texts: nothing of Python runs */
        if (PyDict_GetItemWithError(*own, name) != value)
            return PyErr_Occurred() ? -1 : 0;
    }
    return 1;
}

static int matches_dict(PyObject *keys, PyObject *children, PyObject *x, Walk *walk)
{
    if (PyDict_GET_SIZE(x) != PyTuple_GET_SIZE(keys))
        return 0;
    Py_ssize_t at = 0, i = 0;
    PyObject *key, *value;
    while (PyDict_Next(x, &at, &key, &value)) {
        if (i == PyTuple_GET_SIZE(keys)) /* another thread has put something in */
            return 0;
        PyObject *wanted = PyTuple_GET_ITEM(keys, i);
        if (key != wanted && (!PyUnicode_CheckExact(key) || PyUnicode_Compare(key, wanted) != 0))
            return 0;
        Py_INCREF(value);
        int same = matches(PyTuple_GET_ITEM(children, i++), value, walk);
        Py_DECREF(value);
        if (same != 1)
            return same;
    }
    return i == PyTuple_GET_SIZE(keys);
}

/* Whether x is as a pattern says: 1, 0, or -1 with an error. */
static int matches(PyObject *pattern, PyObject *x, Walk *walk)
{
    if (pattern == Py_None)
        return matches_leaf(x, walk);
    PyObject *keys = PyTuple_GET_ITEM(pattern, 1), *children = PyTuple_GET_ITEM(pattern, 2);
    if ((PyObject *)Py_TYPE(x) != PyTuple_GET_ITEM(pattern, 0))
        return 0;
    if (PyTuple_GET_ITEM(pattern, 3) != Py_None) {
        int same = has_attributes(x, PyTuple_GET_ITEM(pattern, 3));
        if (same != 1)
            return same;
    }
    if (keys != Py_None)
        return matches_dict(keys, children, x, walk);
    Py_ssize_t n = PyTuple_GET_SIZE(children);
    for (Py_ssize_t i = 0; i < n; i++) {
        if (PySequence_Fast_GET_SIZE(x) != n)
            return 0;
        PyObject *child = PySequence_Fast_GET_ITEM(x, i);
        Py_INCREF(child);
        int same = matches(PyTuple_GET_ITEM(children, i), child, walk);
        Py_DECREF(child);
        if (same != 1)
            return same;
    }
    return PySequence_Fast_GET_SIZE(x) == n;
}

PyObject *buffers_like(PyObject *module, PyObject *const *given, Py_ssize_t n_given)
{
    if (n_given < 3 || n_given > 4 || !PyTuple_CheckExact(given[0]) || !PyTuple_CheckExact(given[1]) ||
        !PyList_CheckExact(given[2])) {
        PyErr_SetString(PyExc_TypeError, "buffers_like(patterns, values, expected, distinct=False)");
        return NULL;
    }
    Py_ssize_t n = PyTuple_GET_SIZE(given[0]);
    if (PyTuple_GET_SIZE(given[1]) != n)
        Py_RETURN_NONE;
    Walk walk = {.expected = given[2], .found = PyList_New(0), .at = 0};
    if (n_given == 4 && given[3] == Py_True) {
        for (walk.room = 16; walk.room < 2 * (size_t)PyList_GET_SIZE(given[2]); walk.room *= 2)
            ;
        if ((walk.seen = PyMem_Calloc(walk.room, sizeof(PyObject *))) == NULL) {
            Py_XDECREF(walk.found);
            return PyErr_NoMemory();
        }
    }
    int same = walk.found == NULL ? -1 : 1;
    for (Py_ssize_t i = 0; same == 1 && i < n; i++)
        same = matches(PyTuple_GET_ITEM(given[0], i), PyTuple_GET_ITEM(given[1], i), &walk);
    PyMem_Free(walk.seen);
    if (same == 1)
        return walk.found;
    Py_XDECREF(walk.found);
    if (same < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* Values that are put into the places of leaves, and what they replace: to drop that may run anything, so it is kept until
   all stand in their places. */
typedef struct {
    PyObject *new, *old, *traced;
    Py_ssize_t at;
} Replacement;

static int put_below(PyObject *pattern, PyObject *x, Replacement *all);

/* Give an array that nobody has but the tree another value: 1 if that was done, 0, or -1 with an error. Arrays are made anew
   otherwise, and each that is made brings Python's collector of cycles nearer, which looks at all there is. */
static int renewed(PyObject *x, PyObject *buffer, Replacement *all)
{
#ifdef Py_GIL_DISABLED
    return 0;
#endif
    Py_ssize_t weak = array_type->tp_weaklistoffset;
    if (!Py_IS_TYPE(x, array_type) || Py_REFCNT(x) != 1 || SLOT(x, made_at) != NULL || (weak && SLOT(x, weak) != NULL))
        return 0;
    PyObject *ref = SLOT(x, ref_at);
    if (ref == NULL || !PyTuple_CheckExact(ref) || Py_REFCNT(ref) != 1)
        return 0;
    Node *node = (Node *)PyTuple_GET_ITEM(ref, 0);
    if (!Py_IS_TYPE((PyObject *)node, &NodeType) || Py_REFCNT(node) != 1 || node->weak != NULL || node->op != LEAF)
        return 0;
    PyObject *values = node->values;
    if (values == NULL || !PyList_CheckExact(values) || Py_REFCNT(values) != 1 || PyList_GET_SIZE(values) != 1 ||
        (node->owner != NULL && node->owner != Py_None))
        return 0;
    PyObject *aval = PyObject_GetAttr(buffer, str_aval);
    if (aval == NULL)
        return -1;
    int same = PyTuple_GET_SIZE(node->avals) == 1 && PyTuple_GET_ITEM(node->avals, 0) == aval;
    Py_DECREF(aval);
    if (!same || PyList_Append(all->old, PyList_GET_ITEM(values, 0)) < 0)
        return same ? -1 : 0;
    Py_INCREF(all->traced);
    Py_XSETREF(node->traced, all->traced);
    Py_INCREF(buffer);
    return PyList_SetItem(values, 0, buffer) < 0 ? -1 : 1;
}

/* What is to stand in the place of a child: `child` itself, an array, or NULL with an error. New. */
static PyObject *replaced(PyObject *pattern, PyObject *child, Replacement *all)
{
    if (pattern != Py_None) {
        Py_INCREF(child); /* what makes arrays may run a collection, and that anything */
        if (put_below(pattern, child, all) < 0)
            Py_CLEAR(child);
        return child;
    }
    if (all->at >= PyList_GET_SIZE(all->new)) {
        PyErr_SetString(PyExc_ValueError, "there are more leaves than new values");
        return NULL;
    }
    PyObject *new = PyList_GET_ITEM(all->new, all->at++);
    if (new == Py_None)
        return Py_NewRef(child);
    int done = renewed(child, new, all);
    if (done)
        return done < 0 ? NULL : Py_NewRef(child);
    return PyList_Append(all->old, child) < 0 ? NULL : array_of(new, all->traced);
}

static int put_below(PyObject *pattern, PyObject *x, Replacement *all)
{
    PyObject *keys = PyTuple_GET_ITEM(pattern, 1), *children = PyTuple_GET_ITEM(pattern, 2);
    Py_ssize_t n = PyTuple_GET_SIZE(children);
    if (keys != Py_None ? !PyDict_Check(x) : !PyList_CheckExact(x) && !PyTuple_CheckExact(x)) {
        PyErr_SetString(PyExc_TypeError, "what a pattern has been compared with has changed");
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *child;
        if (keys != Py_None) {
            child = PyDict_GetItemWithError(x, PyTuple_GET_ITEM(keys, i));
            if (child == NULL && PyErr_Occurred())
                return -1;
        }
        else
            child = i < PySequence_Fast_GET_SIZE(x) ? PySequence_Fast_GET_ITEM(x, i) : NULL;
        if (child == NULL) {
            PyErr_SetString(PyExc_TypeError, "what a pattern has been compared with has changed");
            return -1;
        }
        PyObject *new = replaced(PyTuple_GET_ITEM(children, i), child, all);
        if (new == NULL)
            return -1;
        int failed = 0;
        if (new == child || PyTuple_CheckExact(x)) /* a tuple keeps what it has */
            Py_DECREF(new);
        else if (keys != Py_None) {
            failed = PyDict_SetItem(x, PyTuple_GET_ITEM(keys, i), new);
            Py_DECREF(new);
        }
        else
            failed = PyList_SetItem(x, i, new);
        if (failed < 0)
            return -1;
    }
    return 0;
}

PyObject *put_like(PyObject *module, PyObject *const *given, Py_ssize_t n_given)
{
    if (n_given != 3 || !PyTuple_CheckExact(given[0]) || !PyTuple_CheckExact(given[1]) || !PyList_CheckExact(given[2]) ||
        PyTuple_GET_SIZE(given[0]) != PyTuple_GET_SIZE(given[1])) {
        PyErr_SetString(PyExc_TypeError, "put_like(patterns, values, new)");
        return NULL;
    }
    Replacement all = {.new = given[2], .old = PyList_New(0), .traced = PyObject_GetAttr(state, str_traced), .at = 0};
    int failed = all.old == NULL || all.traced == NULL ? -1 : 0;
    for (Py_ssize_t i = 0; !failed && i < PyTuple_GET_SIZE(given[0]); i++) {
        PyObject *pattern = PyTuple_GET_ITEM(given[0], i);
        if (pattern == Py_None)
            all.at++;
        else
            failed = put_below(pattern, PyTuple_GET_ITEM(given[1], i), &all);
    }
    Py_XDECREF(all.traced);
    Py_XDECREF(all.old);
    return failed ? NULL : Py_NewRef(Py_None);
}
