/* Functions cut out of the graph, and keys of their structure; see `dependent_on` and `structure_key` in graph.py. */

#include "core.h"

static PyObject *step_key, *attrs_keys, *plain_names, *str_name;
static PyTypeObject *recorded_type;

/* Take what `graph.py` has: the key of a step, the keys of attributes by the address of these, the names of ops whose
   steps are name and attributes, what parameters are, and the class of recorded nodes. */
PyObject *connect_keys(PyObject *module, PyObject *args)
{
    if (!PyArg_ParseTuple(args, "OO!O!OO!:connect_keys", &step_key, &PyDict_Type, &attrs_keys, &PyDict_Type, &plain_names,
                          &PARAMETER, &PyType_Type, &recorded_type))
        return NULL;
    Py_INCREF(step_key);
    Py_INCREF(attrs_keys);
    Py_INCREF(plain_names);
    Py_INCREF(PARAMETER);
    Py_INCREF(recorded_type);
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

/* A `RecordedNode`, new. */
static PyObject *recorded(Node *node)
{
    PyObject *found = recorded_type->tp_alloc(recorded_type, 6);
    PyObject *items[] = {(PyObject *)node, node->op, node->attrs, node->inputs, node->avals, node->where};
    for (int i = 0; found != NULL && i < 6; i++)
        PyTuple_SET_ITEM(found, i, Py_NewRef(items[i] == NULL ? Py_None : items[i]));
    return found;
}

/* snapshot(nodes): see `graph.py`. */
PyObject *snapshot(PyObject *module, PyObject *nodes)
{
    PyObject *found = NULL, *given = PySequence_Fast(nodes, "nodes are a sequence");
    Py_ssize_t n = given == NULL ? 0 : PySequence_Fast_GET_SIZE(given);
    if (given != NULL)
        found = PyList_New(n);
    for (Py_ssize_t i = 0; found != NULL && i < n; i++) {
        PyObject *node = PySequence_Fast_GET_ITEM(given, i), *step = NULL;
        if (Py_IS_TYPE(node, &NodeType))
            step = recorded((Node *)node);
        else
            PyErr_SetString(PyExc_TypeError, "what is recorded is a node");
        if (step == NULL)
            Py_CLEAR(found);
        else
            PyList_SET_ITEM(found, i, step);
    }
    Py_XDECREF(given);
    return found;
}

/* Add those references to `outside`, the keys of a dictionary, that lead to none of the nodes; 0, or -1 with an error. */
static int add_outside(PyObject *outside, PyObject *refs, PyObject *nodes)
{
    PyObject *items = PySequence_Fast(refs, "references are a sequence");
    int failed = items == NULL;
    for (Py_ssize_t i = 0; !failed && i < PySequence_Fast_GET_SIZE(items); i++) {
        PyObject *ref = PySequence_Fast_GET_ITEM(items, i);
        int known = PySet_Contains(nodes, PyTuple_GET_ITEM(ref, 0));
        failed = known < 0 || (!known && PyDict_SetItem(outside, ref, Py_None) < 0);
    }
    Py_XDECREF(items);
    return failed ? -1 : 0;
}

/* inputs_of(body, outputs): see `graph.py`. */
PyObject *inputs_of(PyObject *module, PyObject *args)
{
    PyObject *body, *outputs = empty, *found = NULL;
    if (!PyArg_ParseTuple(args, "O|O:inputs_of", &body, &outputs))
        return NULL;
    PyObject *steps = PySequence_Fast(body, "a body is a sequence"), *nodes = PySet_New(NULL), *outside = PyDict_New();
    int failed = steps == NULL || nodes == NULL || outside == NULL;
    Py_ssize_t n = failed ? 0 : PySequence_Fast_GET_SIZE(steps);
    for (Py_ssize_t i = 0; !failed && i < n; i++) {
        PyObject *step = PySequence_Fast_GET_ITEM(steps, i);
        if (!Py_IS_TYPE(step, recorded_type)) {
            PyErr_SetString(PyExc_TypeError, "a step is a RecordedNode");
            failed = 1;
        } else
            failed = PySet_Add(nodes, PyTuple_GET_ITEM(step, 0)) < 0;
    }
    for (Py_ssize_t i = 0; !failed && i < n; i++)
        failed = add_outside(outside, PyTuple_GET_ITEM(PySequence_Fast_GET_ITEM(steps, i), 3), nodes) < 0;
    if (!failed && add_outside(outside, outputs, nodes) == 0)
        found = PyDict_Keys(outside);
    Py_XDECREF(steps);
    Py_XDECREF(nodes);
    Py_XDECREF(outside);
    return found;
}

/* Whether a node is applied to one of the nodes: 1, 0, or -1 with an error. */
static int reads_any(Node *node, PyObject *nodes)
{
    int found = 0;
    for (Py_ssize_t i = 0; !found && i < PyTuple_GET_SIZE(node->inputs); i++)
        found = PySet_Contains(nodes, PyTuple_GET_ITEM(PyTuple_GET_ITEM(node->inputs, i), 0));
    return found;
}

/* dependent_on(parameters, outputs): see `graph.py`. */
PyObject *dependent_on(PyObject *module, PyObject *args)
{
    PyObject *parameters, *outputs, *ref, *found = NULL, *body = NULL, *outside = NULL, *inside = NULL, *order = NULL;
    if (!PyArg_ParseTuple(args, "OO:dependent_on", &parameters, &outputs))
        return NULL;
    PyObject *given = PyObject_GetIter(parameters), *markers = given == NULL ? NULL : PySet_New(NULL);
    while (markers != NULL && (ref = PyIter_Next(given)) != NULL) {
        if (!PyTuple_Check(ref) || PyTuple_GET_SIZE(ref) != 2)
            PyErr_SetString(PyExc_TypeError, "a reference is a node and the number of a result");
        else
            PySet_Add(markers, PyTuple_GET_ITEM(ref, 0));
        Py_DECREF(ref);
        if (PyErr_Occurred())
            break;
    }
    if (markers == NULL || PyErr_Occurred() || (order = in_order(outputs, markers)) == NULL)
        goto done;
    if ((inside = PySet_New(markers)) == NULL || (body = PyList_New(0)) == NULL || (outside = PyDict_New()) == NULL)
        goto done;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(order); i++) {
        Node *node = (Node *)PyList_GET_ITEM(order, i);
        int depends = reads_any(node, inside);
        if (depends < 0 || (depends && PySet_Add(inside, (PyObject *)node) < 0))
            goto done;
        PyObject *step = depends ? recorded(node) : NULL;
        int added = step == NULL ? 0 : PyList_Append(body, step);
        Py_XDECREF(step);
        if (added < 0 || (depends && step == NULL))
            goto done;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(body); i++)
        if (add_outside(outside, PyTuple_GET_ITEM(PyList_GET_ITEM(body, i), 3), inside) < 0)
            goto done;
    if (add_outside(outside, outputs, inside) == 0) {
        PyObject *captured = PyDict_Keys(outside);
        found = captured == NULL ? NULL : PyTuple_Pack(2, body, captured);
        Py_XDECREF(captured);
    }
done:
    Py_XDECREF(given);
    Py_XDECREF(markers);
    Py_XDECREF(order);
    Py_XDECREF(inside);
    Py_XDECREF(body);
    Py_XDECREF(outside);
    return found;
}
