/* Keys of the structure of functions; see `structure_key` in graph.py. */

#include "core.h"

static PyObject *step_key, *attrs_keys, *plain_names, *str_name;

/* Take what `graph.py` has: the key of a step, the keys of attributes by the address of these, the names of ops whose
   steps are name and attributes, and what parameters are. */
PyObject *connect_keys(PyObject *module, PyObject *args)
{
    if (!PyArg_ParseTuple(args, "OO!O!O:connect_keys", &step_key, &PyDict_Type, &attrs_keys, &PyDict_Type, &plain_names,
                          &PARAMETER))
        return NULL;
    Py_INCREF(step_key);
    Py_INCREF(attrs_keys);
    Py_INCREF(plain_names);
    Py_INCREF(PARAMETER);
    if (str_name == NULL && (str_name = PyUnicode_InternFromString("name")) == NULL)
        return NULL;
    Py_RETURN_NONE;
}

/* The next number in `number`, for `ref`, unless it has one. */
static int count_in(PyObject *number, PyObject *ref)
{
    PyObject *next = PyLong_FromSsize_t(PyDict_GET_SIZE(number));
    if (next == NULL)
        return -1;
    PyObject *found = PyDict_SetDefault(number, ref, next);
    Py_DECREF(next);
    return found == NULL ? -1 : 0;
}

/* The numbers of references, as a tuple. */
static PyObject *numbers_of(PyObject *number, PyObject *refs)
{
    PyObject *items = PySequence_Fast(refs, "references are a sequence");
    if (items == NULL)
        return NULL;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(items);
    PyObject *found = PyTuple_New(n);
    for (Py_ssize_t i = 0; found != NULL && i < n; i++) {
        PyObject *ref = PySequence_Fast_GET_ITEM(items, i), *at = PyDict_GetItemWithError(number, ref);
        if (at == NULL) {
            if (!PyErr_Occurred())
                PyErr_SetObject(PyExc_KeyError, ref);
            Py_CLEAR(found);
            break;
        }
        Py_INCREF(at);
        PyTuple_SET_ITEM(found, i, at);
    }
    Py_DECREF(items);
    return found;
}

/* Shape and name of the dtype of what a reference leads to. */
static PyObject *type_of(PyObject *ref)
{
    if (!PyTuple_Check(ref) || PyTuple_GET_SIZE(ref) != 2 || !Py_IS_TYPE(PyTuple_GET_ITEM(ref, 0), &NodeType)) {
        PyErr_SetString(PyExc_TypeError, "a reference is a node and the number of a result");
        return NULL;
    }
    PyObject *avals = ((Node *)PyTuple_GET_ITEM(ref, 0))->avals;
    PyObject *aval = avals == NULL ? NULL : PyObject_GetItem(avals, PyTuple_GET_ITEM(ref, 1)), *found = NULL;
    if (aval == NULL) {
        if (avals == NULL)
            PyErr_SetString(PyExc_AttributeError, "avals");
        return NULL;
    }
    if (Py_IS_TYPE(aval, aval_type)) {
        PyObject *shape = SLOT(aval, shape_at), *dtype = SLOT(aval, dtype_at);
        PyObject *name = shape == NULL || dtype == NULL ? NULL : PyObject_GetAttr(dtype, str_name);
        if (name != NULL)
            found = PyTuple_Pack(2, shape, name);
        Py_XDECREF(name);
    }
    if (found == NULL && !PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "the type of a result is an Aval");
    Py_DECREF(aval);
    return found;
}

/* Name and attributes of a step (a `RecordedNode`), as `step_key` gives them; that is asked where they are not known. */
static PyObject *key_of_step(PyObject *step)
{
    PyObject *attrs = PyTuple_GET_ITEM(step, 2);
    PyObject *name = PyDict_GetItemWithError(plain_names, PyTuple_GET_ITEM(step, 1)), *key = NULL;
    if (name != NULL && PyDict_CheckExact(attrs)) {
        if (PyDict_GET_SIZE(attrs) == 0)
            key = empty;
        else {
            PyObject *address = PyLong_FromVoidPtr(attrs);
            PyObject *known = address == NULL ? NULL : PyDict_GetItemWithError(attrs_keys, address);
            Py_XDECREF(address);
            if (known != NULL && PyTuple_Check(known) && PyTuple_GET_SIZE(known) == 2)
                key = PyTuple_GET_ITEM(known, 1);
        }
    }
    if (key != NULL)
        return PyTuple_Pack(2, name, key);
    return PyErr_Occurred() ? NULL : PyObject_CallOneArg(step_key, step);
}

static PyObject *part_of_step(PyObject *step, PyObject *number)
{
    if (!PyTuple_Check(step) || PyTuple_GET_SIZE(step) < 5 || !PyTuple_Check(PyTuple_GET_ITEM(step, 4))) {
        PyErr_SetString(PyExc_TypeError, "a step is a RecordedNode");
        return NULL;
    }
    PyObject *key = key_of_step(step), *read = key == NULL ? NULL : numbers_of(number, PyTuple_GET_ITEM(step, 3));
    PyObject *found = NULL;
    if (read != NULL && PyTuple_Check(key) && PyTuple_GET_SIZE(key) == 2)
        found = PyTuple_Pack(3, PyTuple_GET_ITEM(key, 0), PyTuple_GET_ITEM(key, 1), read);
    Py_XDECREF(key);
    Py_XDECREF(read);
    for (Py_ssize_t i = 0; found != NULL && i < PyTuple_GET_SIZE(PyTuple_GET_ITEM(step, 4)); i++) {
        PyObject *at = PyLong_FromSsize_t(i);
        PyObject *ref = at == NULL ? NULL : PyTuple_Pack(2, PyTuple_GET_ITEM(step, 0), at);
        Py_XDECREF(at);
        if (ref == NULL || count_in(number, ref) < 0)
            Py_CLEAR(found);
        Py_XDECREF(ref);
    }
    return found;
}

/* structure_key(inputs, body, outputs): see `graph.py`. */
PyObject *structure_key(PyObject *module, PyObject *args)
{
    PyObject *inputs, *body, *outputs, *parts = NULL, *number = NULL, *part;
    if (!PyArg_ParseTuple(args, "OOO:structure_key", &inputs, &body, &outputs))
        return NULL;
    inputs = PySequence_Fast(inputs, "inputs are a sequence");
    body = inputs == NULL ? NULL : PySequence_Fast(body, "a body is a sequence");
    if (body == NULL || (number = PyDict_New()) == NULL)
        goto done;
    Py_ssize_t n_inputs = PySequence_Fast_GET_SIZE(inputs), n = PySequence_Fast_GET_SIZE(body);
    if ((parts = PyTuple_New(n + 2)) == NULL || (part = PyTuple_New(n_inputs)) == NULL)
        goto failed;
    PyTuple_SET_ITEM(parts, 0, part);
    for (Py_ssize_t i = 0; i < n_inputs; i++) {
        PyObject *ref = PySequence_Fast_GET_ITEM(inputs, i), *type = type_of(ref);
        if (type == NULL || count_in(number, ref) < 0) {
            Py_XDECREF(type);
            goto failed;
        }
        PyTuple_SET_ITEM(part, i, type);
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        if ((part = part_of_step(PySequence_Fast_GET_ITEM(body, i), number)) == NULL)
            goto failed;
        PyTuple_SET_ITEM(parts, i + 1, part);
    }
    if ((part = numbers_of(number, outputs)) == NULL)
        goto failed;
    PyTuple_SET_ITEM(parts, n + 1, part);
    goto done;
failed:
    Py_CLEAR(parts);
done:
    Py_XDECREF(inputs);
    Py_XDECREF(body);
    Py_XDECREF(number);
    return parts;
}
