/* Running a plan: see `steps.py` for what it does, and plan.c for what a plan is. */

#include "plan.h"

/* Arguments for which a call needs no memory of its own. */
#define USUAL_ARGUMENTS 24

/* The error of a step, with the op and the line where these are told. */
static void explain(Plan *self, Py_ssize_t i)
{
    if (!PyErr_ExceptionMatches(PyExc_Exception))
        return;
    PyObject *type, *error, *trace;
    PyErr_Fetch(&type, &error, &trace);
    PyErr_NormalizeException(&type, &error, &trace);
    PyObject *op = PyTuple_GET_ITEM(self->prepared[i], 8), *where = self->nodes[i]->where;
    PyObject *better = PyObject_CallFunctionObjArgs(step_failed, op, error, where ? where : Py_None, NULL);
    if (better == error) { /* with its traceback */
        Py_DECREF(better);
        PyErr_Restore(type, error, trace);
        return;
    }
    if (better != NULL)
        PyErr_SetObject((PyObject *)Py_TYPE(better), better);
    Py_XDECREF(better);
    Py_XDECREF(type);
    Py_XDECREF(error);
    Py_XDECREF(trace);
}

/* The value of operand k, new; NULL with an error. */
static PyObject *operand(Plan *self, PyObject **results, int k)
{
    int code = self->codes[k];
    if (code < 0)
        return PyObject_GetAttr(self->leaves[~code], str_array);
    PyObject *result = results[code];
    return Py_NewRef(PyList_CheckExact(result) ? PyList_GET_ITEM(result, self->inputs[k] >> 32) : result);
}

/* The result of node i: an array, or a list of several; NULL with an error. */
static PyObject *step(Plan *self, PyObject **results, Py_ssize_t i)
{
    PyObject *known = self->prepared[i], *function = PyTuple_GET_ITEM(known, 0), *before = PyTuple_GET_ITEM(known, 1);
    PyObject *extra = PyTuple_GET_ITEM(known, 2), *names = PyTuple_GET_ITEM(known, 3), *result = NULL;
    PyObject *local[USUAL_ARGUMENTS + 1], **memory = local, **args;
    if (self->flags[i] & SHORT || function == Py_None) /* its operand itself */
        return operand(self, results, self->first[i]);
    Py_ssize_t most = 1 + self->first[i + 1] - self->first[i] + PyTuple_GET_SIZE(extra);
    if (most > USUAL_ARGUMENTS && (memory = PyMem_Malloc((size_t)(most + 1) * sizeof(PyObject *))) == NULL)
        return PyErr_NoMemory();
    args = memory + 1;
    Py_ssize_t several = PyTuple_GET_SIZE(self->nodes[i]->avals), begin = before != Py_None, n = begin;
    args[0] = before;
    for (int k = self->first[i]; k < self->first[i + 1]; k++, n++)
        if ((args[n] = operand(self, results, k)) == NULL)
            goto done;
    Py_ssize_t operands = n;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(extra); k++)
        args[n++] = PyTuple_GET_ITEM(extra, k);
    result = PyObject_Vectorcall(function, args, (names == Py_None ? n : operands) | PY_VECTORCALL_ARGUMENTS_OFFSET,
                                 names == Py_None ? NULL : names);
    n = operands;
    if (result != NULL && PyLong_AsLong(PyTuple_GET_ITEM(known, 4)) & SEVERAL) {
        if (!PyList_CheckExact(result) || PyList_GET_SIZE(result) != several) {
            PyErr_SetString(PyExc_TypeError, "several results come in a list");
            Py_CLEAR(result);
        }
    }
    else if (result != NULL && !Py_IS_TYPE(result, ndarray_type)) { /* NumPy makes scalars of what has no axes */
        PyObject *array = PyObject_CallOneArg(as_array, result);
        Py_DECREF(result);
        result = array;
    }
done:
    while (n > begin)
        Py_DECREF(args[--n]);
    if (memory != local)
        PyMem_Free(memory);
    return result;
}

static Py_ssize_t at_address, at_array, at_aval, at_home; /* slots of buffers; 0: they are not what is known here */

/* A result as a buffer. */
PyObject *buffer_of(PyObject *array, PyObject *aval)
{
    if (at_array) {
        PyObject *base = PyObject_GetAttrString(array, "base");
        Py_XDECREF(base);
        if (base == NULL)
            return NULL;
        Py_buffer view;
        if (base == Py_None && PyObject_GetBuffer(array, &view, PyBUF_WRITABLE) == 0) {
            PyObject *address = PyLong_FromVoidPtr(view.buf), *found = NULL;
            if (address != NULL && view.len > 0 && (found = buffer_type->tp_new(buffer_type, empty, NULL)) != NULL) {
                SLOT(found, at_address) = Py_NewRef(address);
                SLOT(found, at_array) = Py_NewRef(array);
                SLOT(found, at_aval) = Py_NewRef(aval);
                SLOT(found, at_home) = Py_NewRef(Py_None);
            }
            PyBuffer_Release(&view);
            Py_XDECREF(address);
            if (found != NULL || PyErr_Occurred())
                return found;
        }
        else if (base == Py_None)
            PyErr_Clear(); /* not contiguous, read-only, of bfloat16 */
    }
    return PyObject_CallFunctionObjArgs(as_buffer, array, aval, NULL);
}

/* The values of node i: a list of buffers. */
static PyObject *values_of(Plan *self, PyObject *result, Py_ssize_t i)
{
    PyObject *avals = self->nodes[i]->avals;
    int several = PyList_CheckExact(result);
    PyObject *found = PyList_New(several ? PyList_GET_SIZE(result) : 1);
    for (Py_ssize_t k = 0; found != NULL && k < PyList_GET_SIZE(found); k++) {
        PyObject *buffer = buffer_of(several ? PyList_GET_ITEM(result, k) : result, PyTuple_GET_ITEM(avals, k));
        if (buffer == NULL)
            Py_CLEAR(found);
        else
            PyList_SET_ITEM(found, k, buffer);
    }
    return found;
}

/* Give the nodes that are kept their values, lists of buffers; `owned` is that of the evaluation that has them in work,
   or NULL. */
static int settle(Plan *self, PyObject **results, PyObject *owned)
{
    int fine = 1;
    PyObject *recording = PyObject_GetAttr(state, str_recording), *deferred = NULL;
    if (recording == NULL)
        return -1;
    int records = PyObject_IsTrue(recording);
    Py_DECREF(recording);
    if (records && (deferred = PyObject_GetAttrString(state, "deferred")) == NULL)
        return -1;
    for (Py_ssize_t i = 0; fine && i < self->n; i++) {
        Node *node = self->nodes[i];
        if (!(self->flags[i] & KEPT) || IS_SET(node->values)) /* or another thread was first */
            continue;
        PyObject *before = node->values;
        node->values = results[i];
        results[i] = NULL;
        Py_XDECREF(before);
        if (records)
            fine = PyList_Append(deferred, (PyObject *)node) == 0;
        else if (node->owner == owned || !is_owned(node))
            node_forget(node);
    }
    Py_XDECREF(deferred);
    return fine ? 0 : -1;
}

PyObject *plan_run(Plan *self, PyObject *unused)
{
    if (!self->plain) {
        PyErr_SetString(PyExc_ValueError, "the plan is not plain");
        return NULL;
    }
    /* With what is counted down in it: a run that failed may be followed by another. */
    PyObject **results = PyMem_Calloc(self->n, sizeof(PyObject *) + sizeof(int));
    int fine = results != NULL, *uses = NULL;
    if (fine)
        uses = memcpy(results + self->n, self->uses, self->n * sizeof(int));
    else
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; fine && i < self->n; i++) {
        if (i % 256 == 255 && PyErr_CheckSignals() < 0) {
            fine = 0;
            break;
        }
        if ((results[i] = step(self, results, i)) == NULL) {
            explain(self, i);
            fine = 0;
            break;
        }
        for (int k = self->first[i]; k < self->first[i + 1]; k++) {
            int code = self->codes[k];
            if (code >= 0 && !--uses[code] && !(self->flags[code] & KEPT))
                Py_CLEAR(results[code]);
        }
    }
    for (Py_ssize_t i = 0; fine && i < self->n; i++)
        if (self->flags[i] & KEPT) {
            PyObject *values = values_of(self, results[i], i);
            Py_DECREF(results[i]);
            results[i] = values;
            fine = values != NULL;
        }
    fine = fine && settle(self, results, NULL) == 0;
    for (Py_ssize_t i = 0; results != NULL && i < self->n; i++)
        Py_XDECREF(results[i]);
    PyMem_Free(results);
    if (!fine)
        return NULL;
    Py_RETURN_NONE;
}

PyObject *plan_claim(Plan *self, PyObject *owned)
{
    for (Py_ssize_t i = 0; i < self->n; i++)
        if (IS_SET(self->nodes[i]->values) || is_owned(self->nodes[i]))
            Py_RETURN_FALSE;
    for (Py_ssize_t i = 0; i < self->n; i++) {
        PyObject *before = self->nodes[i]->owner;
        self->nodes[i]->owner = Py_NewRef(owned);
        Py_XDECREF(before);
    }
    Py_RETURN_TRUE;
}

PyObject *plan_values(Plan *self, PyObject *places)
{
    if (!PyTuple_Check(places)) {
        PyErr_SetString(PyExc_TypeError, "places come in a tuple");
        return NULL;
    }
    PyObject *found = PyList_New(PyTuple_GET_SIZE(places));
    for (Py_ssize_t i = 0; found != NULL && i < PyTuple_GET_SIZE(places); i++) {
        Py_ssize_t at = PyLong_AsSsize_t(PyTuple_GET_ITEM(places, i));
        if (at < 0 || at >= self->n_codes || self->codes[at] >= 0) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_IndexError, "no operand that has a value");
            Py_CLEAR(found);
        }
        else
            PyList_SET_ITEM(found, i, Py_NewRef(self->leaves[~self->codes[at]]));
    }
    return found;
}

PyObject *plan_give(Plan *self, PyObject *args)
{
    PyObject *buffers, *owned;
    if (!PyArg_ParseTuple(args, "O!O:give", &PyList_Type, &buffers, &owned))
        return NULL;
    PyObject **results = PyMem_Calloc(self->n, sizeof(PyObject *));
    int fine = results != NULL;
    if (!fine)
        PyErr_NoMemory();
    Py_ssize_t end = 0;
    for (Py_ssize_t i = 0; fine && i < self->n; i++)
        if (self->flags[i] & KEPT) {
            Py_ssize_t begin = end;
            end += PyTuple_GET_SIZE(self->nodes[i]->avals);
            fine = (results[i] = PyList_GetSlice(buffers, begin, end)) != NULL;
        }
    if (fine && PyList_GET_SIZE(buffers) != end) {
        PyErr_Format(PyExc_ValueError, "%zd values for %zd results", PyList_GET_SIZE(buffers), end);
        fine = 0;
    }
    fine = fine && settle(self, results, owned) == 0;
    for (Py_ssize_t i = 0; results != NULL && i < self->n; i++)
        Py_XDECREF(results[i]);
    PyMem_Free(results);
    if (!fine)
        return NULL;
    Py_RETURN_NONE;
}

/* Take what `steps.py` has. */
PyObject *connect_steps(PyObject *module, PyObject *args)
{
    PyObject *buffer, *array, *kind, *function;
    if (!PyArg_ParseTuple(args, "O!O!O!O!OOOO:connect_steps", &PyType_Type, &buffer, &PyType_Type, &array, &PyType_Type, &kind,
                          &PyType_Type, &function, &prepare, &as_buffer, &as_array, &step_failed))
        return NULL;
    PyObject *kept[] = {buffer, array, kind, function, prepare, as_buffer, as_array, step_failed};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        Py_INCREF(kept[i]); /* for as long as the process lives */
    buffer_type = (PyTypeObject *)buffer;
    ndarray_type = (PyTypeObject *)array;
    prepared_type = (PyTypeObject *)kind;
    function_type = (PyTypeObject *)function;
    if ((at_address = slot_of(buffer, "address")) < 0 || (at_aval = slot_of(buffer, "aval")) < 0 ||
        (at_home = slot_of(buffer, "home")) < 0 || (at_array = slot_of(buffer, "array")) < 0)
        return NULL;
    Py_RETURN_NONE;
}
