/* Keys of structures whatever their sizes; see `sizeless_key` in sizeless.py. */

#include "core.h"

enum { PLAIN, APPLIED, FUNCTIONS, LINED };

static PyObject *ways, *way_of, *str_parts;
static PyTypeObject *function_key_type;

/* The new names, in order; and functions' keys with new names, by the old ones. */
typedef struct {
    PyObject *sizes, *numbers, *functions;
} Renaming;

static PyObject *function_of(Renaming *r, PyObject *parts);

/* Take what `sizeless.py` has: the class of functions' keys, how keys of steps are made, and what finds that out. */
PyObject *connect_sizeless(PyObject *module, PyObject *args)
{
    PyObject *type;
    if (!PyArg_ParseTuple(args, "O!O!O:connect_sizeless", &PyType_Type, &type, &PyDict_Type, &ways, &way_of))
        return NULL;
    Py_INCREF(type);
    Py_INCREF(ways);
    Py_INCREF(way_of);
    function_key_type = (PyTypeObject *)type;
    if (str_parts == NULL && (str_parts = PyUnicode_InternFromString("parts")) == NULL)
        return NULL;
    Py_RETURN_NONE;
}

/* The name of a size: -1, -2, …; of a number among attributes: 0, 1, … */
static PyObject *named(PyObject *names, PyObject *x, int down)
{
    Py_ssize_t n = PyDict_GET_SIZE(names);
    PyObject *next = PyLong_FromSsize_t(down ? -1 - n : n), *found = NULL;
    if (next != NULL)
        found = PyDict_SetDefault(names, x, next);
    Py_XINCREF(found);
    Py_XDECREF(next);
    return found;
}

static PyObject *renamed_size(Renaming *r, PyObject *x)
{
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(x, &overflow);
    if (value == -1 && PyErr_Occurred())
        return NULL;
    if (overflow > 0 || value > 1)
        return named(r->sizes, x, 1);
    return value < 0 ? PyTuple_Pack(1, x) : Py_NewRef(x);
}

static PyObject *value_of(Renaming *r, PyObject *x)
{
    if (PyLong_CheckExact(x))
        return renamed_size(r, x);
    if (!PyTuple_CheckExact(x))
        return Py_NewRef(x);
    Py_ssize_t n = PyTuple_GET_SIZE(x);
    if (n == 2 && PyTuple_GET_ITEM(x, 0) == (PyObject *)&PyFloat_Type) {
        PyObject *name = named(r->numbers, x, 0), *found = NULL;
        if (name != NULL)
            found = PyTuple_Pack(2, PyTuple_GET_ITEM(x, 0), name);
        Py_XDECREF(name);
        return found;
    }
    PyObject *found = PyTuple_New(n);
    for (Py_ssize_t i = 0; found != NULL && i < n; i++) {
        PyObject *item = PyTuple_GET_ITEM(x, i);
        PyObject *made = PyLong_CheckExact(item) ? renamed_size(r, item) : Py_NewRef(item);
        if (made == NULL)
            Py_CLEAR(found);
        else
            PyTuple_SET_ITEM(found, i, made);
    }
    return found;
}

/* A key of attributes, those among `names` renamed. */
static PyObject *attributes_of(Renaming *r, PyObject *key, PyObject *names)
{
    if (!PyTuple_Check(key))
        return Py_NewRef(key);
    Py_ssize_t n = PyTuple_GET_SIZE(key);
    PyObject *found = PyTuple_New(n);
    for (Py_ssize_t i = 0; found != NULL && i < n; i++) {
        PyObject *pair = PyTuple_GET_ITEM(key, i), *made = NULL;
        int is_size = PyTuple_Check(pair) && PyTuple_GET_SIZE(pair) == 2;
        if (is_size)
            is_size = PySequence_Contains(names, PyTuple_GET_ITEM(pair, 0));
        if (is_size > 0) {
            PyObject *value = value_of(r, PyTuple_GET_ITEM(pair, 1));
            made = value == NULL ? NULL : PyTuple_Pack(2, PyTuple_GET_ITEM(pair, 0), value);
            Py_XDECREF(value);
        } else if (is_size == 0)
            made = Py_NewRef(pair);
        if (made == NULL)
            Py_CLEAR(found);
        else
            PyTuple_SET_ITEM(found, i, made);
    }
    return found;
}

/* A function's key, renamed: once for all places where it stands. */
static PyObject *renamed_function(Renaming *r, PyObject *key)
{
    PyObject *found = PyDict_GetItemWithError(r->functions, key), *made = NULL;
    if (found != NULL || PyErr_Occurred())
        return Py_XNewRef(found);
    PyObject *parts = PyObject_GetAttr(key, str_parts);
    if (parts != NULL && Py_EnterRecursiveCall(" in a key of nested functions") == 0) {
        made = function_of(r, parts);
        Py_LeaveRecursiveCall();
    }
    if (made != NULL)
        found = PyObject_CallOneArg((PyObject *)function_key_type, made);
    if (found != NULL && PyDict_SetItem(r->functions, key, found) < 0)
        Py_CLEAR(found);
    Py_XDECREF(parts);
    Py_XDECREF(made);
    return found;
}

/* Keys of functions, wherever they stand in tuples, renamed. */
static PyObject *nested(Renaming *r, PyObject *x)
{
    PyObject *found = NULL;
    if (Py_IS_TYPE(x, function_key_type))
        return renamed_function(r, x);
    if (!PyTuple_CheckExact(x))
        return Py_NewRef(x);
    Py_ssize_t n = PyTuple_GET_SIZE(x);
    if (Py_EnterRecursiveCall(" in a key of nested functions") != 0)
        return NULL;
    found = PyTuple_New(n);
    for (Py_ssize_t i = 0; found != NULL && i < n; i++) {
        PyObject *made = nested(r, PyTuple_GET_ITEM(x, i));
        if (made == NULL)
            Py_CLEAR(found);
        else
            PyTuple_SET_ITEM(found, i, made);
    }
    Py_LeaveRecursiveCall();
    return found;
}

/* How the keys of an op's steps are made, as `way_of` says. */
static PyObject *way_called(PyObject *name)
{
    PyObject *way = PyDict_GetItemWithError(ways, name);
    if (way != NULL)
        return Py_NewRef(way);
    return PyErr_Occurred() ? NULL : PyObject_CallOneArg(way_of, name);
}

/* How a function is transformed. */
static PyObject *transforms_of(Renaming *r, PyObject *transforms)
{
    Py_ssize_t n = PyTuple_GET_SIZE(transforms);
    PyObject *found = PyTuple_New(n);
    for (Py_ssize_t i = 0; found != NULL && i < n; i++) {
        PyObject *part = PyTuple_GET_ITEM(transforms, i), *name = PyTuple_GET_ITEM(part, 0), *key = NULL, *made = NULL;
        PyObject *way = way_called(name);
        if (way != NULL)
            key = attributes_of(r, PyTuple_GET_ITEM(part, 1), PyTuple_GET_ITEM(way, 1));
        if (key != NULL)
            made = PyTuple_Pack(2, name, key);
        Py_XDECREF(way);
        Py_XDECREF(key);
        if (made == NULL)
            Py_CLEAR(found);
        else
            PyTuple_SET_ITEM(found, i, made);
    }
    return found;
}

static PyObject *key_of_step(Renaming *r, PyObject *key, long way, PyObject *names)
{
    if (way == FUNCTIONS)
        return nested(r, key);
    if (way == PLAIN)
        return attributes_of(r, key, names);
    PyObject *first = PyTuple_GET_ITEM(key, 0), *second = PyTuple_GET_ITEM(key, 1), *found = NULL;
    first = way == APPLIED ? nested(r, first) : attributes_of(r, first, names);
    second = first == NULL ? NULL : way == APPLIED ? transforms_of(r, second) : Py_NewRef(second);
    if (second != NULL)
        found = PyTuple_Pack(2, first, second);
    Py_XDECREF(first);
    Py_XDECREF(second);
    return found;
}

static PyObject *step_of(Renaming *r, PyObject *part)
{
    if (!PyTuple_Check(part) || PyTuple_GET_SIZE(part) != 3) {
        PyErr_SetString(PyExc_TypeError, "a step's key is a name, attributes, and what it reads");
        return NULL;
    }
    PyObject *name = PyTuple_GET_ITEM(part, 0), *way = way_called(name), *found = NULL;
    if (way == NULL)
        return NULL;
    long kind = PyLong_AsLong(PyTuple_GET_ITEM(way, 0));
    PyObject *names = PyTuple_GET_ITEM(way, 1);
    if ((kind == PLAIN || kind == LINED) && PyTuple_GET_SIZE(names) == 0)
        found = Py_NewRef(part);
    else {
        PyObject *key = key_of_step(r, PyTuple_GET_ITEM(part, 1), kind, names);
        if (key != NULL)
            found = PyTuple_Pack(3, name, key, PyTuple_GET_ITEM(part, 2));
        Py_XDECREF(key);
    }
    Py_DECREF(way);
    return found;
}

static PyObject *types_of(Renaming *r, PyObject *inputs)
{
    Py_ssize_t n = PyTuple_GET_SIZE(inputs);
    PyObject *found = PyTuple_New(n);
    for (Py_ssize_t i = 0; found != NULL && i < n; i++) {
        PyObject *type = PyTuple_GET_ITEM(inputs, i), *shape = value_of(r, PyTuple_GET_ITEM(type, 0));
        PyObject *made = shape == NULL ? NULL : PyTuple_Pack(2, shape, PyTuple_GET_ITEM(type, 1));
        Py_XDECREF(shape);
        if (made == NULL)
            Py_CLEAR(found);
        else
            PyTuple_SET_ITEM(found, i, made);
    }
    return found;
}

static PyObject *function_of(Renaming *r, PyObject *parts)
{
    Py_ssize_t n = PyTuple_Check(parts) ? PyTuple_GET_SIZE(parts) : 0;
    if (n >= 1 && Py_IS_TYPE(PyTuple_GET_ITEM(parts, 0), function_key_type))
        return nested(r, parts);
    if (n < 2 || !PyTuple_Check(PyTuple_GET_ITEM(parts, 0))) {
        PyErr_SetString(PyExc_TypeError, "a structure is what `structure_key` gives");
        return NULL;
    }
    PyObject *found = PyTuple_New(n);
    /* In the order in which `sizeless.py` renames. */
    for (Py_ssize_t i = 0; found != NULL && i < n; i++) {
        PyObject *part = PyTuple_GET_ITEM(parts, i), *made;
        made = i == 0 ? types_of(r, part) : i == n - 1 ? Py_NewRef(part) : step_of(r, part);
        if (made == NULL)
            Py_CLEAR(found);
        else
            PyTuple_SET_ITEM(found, i, made);
    }
    return found;
}

/* sizeless_key(structure): see `sizeless.py`. */
PyObject *sizeless_key(PyObject *module, PyObject *structure)
{
    Renaming r = {PyDict_New(), PyDict_New(), PyDict_New()};
    const int failed = r.sizes == NULL || r.numbers == NULL || r.functions == NULL;
    PyObject *found = failed ? NULL : function_of(&r, structure);
    Py_XDECREF(r.sizes);
    Py_XDECREF(r.numbers);
    Py_XDECREF(r.functions);
    return found;
}
