/* Calls of NumPy on the frame of a program. */

#include "core.h"

/* One more than `host_calls.MOST_ARGUMENTS`, for the op. */
#define MOST_ARGUMENTS 24

/* Run calls on a frame; 0, or -1 with an error. */
static int run_on(PyObject *frame, PyObject *calls)
{
    Py_ssize_t n_calls = PyList_GET_SIZE(calls), room = PyList_GET_SIZE(frame);
    PyObject *local[MOST_ARGUMENTS + 1], **args = local + 1;
    for (Py_ssize_t i = 0; i < n_calls; i++) {
        PyObject *call = PyList_GET_ITEM(calls, i), *function = PyTuple_GET_ITEM(call, 0), *result;
        PyObject *before = PyTuple_GET_ITEM(call, 1), *extra = PyTuple_GET_ITEM(call, 2);
        PyObject *names = PyTuple_GET_ITEM(call, 3), *read = PyTuple_GET_ITEM(call, 4), *dead = PyTuple_GET_ITEM(call, 6);
        Py_ssize_t first = PyLong_AsSsize_t(PyTuple_GET_ITEM(call, 5)), n = 0, operands;
        if (before != Py_None)
            args[n++] = before;
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(read); k++) /* the frame holds them */
            args[n++] = PyList_GET_ITEM(frame, PyLong_AsSsize_t(PyTuple_GET_ITEM(read, k)));
        operands = n;
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(extra); k++)
            args[n++] = PyTuple_GET_ITEM(extra, k);
        if (function == Py_None)
            result = Py_NewRef(args[0]);
        else
            result = PyObject_Vectorcall(function, args, (names == Py_None ? n : operands) | PY_VECTORCALL_ARGUMENTS_OFFSET,
                                         names == Py_None ? NULL : names);
        if (result != NULL && PyList_CheckExact(result)) {
            if (first + PyList_GET_SIZE(result) > room)
                PyErr_SetString(PyExc_IndexError, "a frame has no room for the results of a call");
            for (Py_ssize_t k = 0; !PyErr_Occurred() && k < PyList_GET_SIZE(result); k++)
                PyList_SetItem(frame, first + k, Py_NewRef(PyList_GET_ITEM(result, k)));
            Py_DECREF(result);
            if (PyErr_Occurred())
                return -1;
        }
        else {
            if (result != NULL && !Py_IS_TYPE(result, ndarray_type)) {
                PyObject *array = PyObject_CallOneArg(as_array, result);
                Py_DECREF(result);
                result = array;
            }
            if (result == NULL) {
                if (PyErr_ExceptionMatches(PyExc_MemoryError)) { /* the last one says which call had none */
                    PyObject *type, *error, *trace, *place = PyLong_FromSsize_t(i);
                    PyErr_Fetch(&type, &error, &trace);
                    if (place != NULL)
                        PyList_SetItem(frame, room - 1, place);
                    PyErr_Restore(type, error, trace);
                }
                return -1;
            }
            PyList_SetItem(frame, first, result);
        }
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(dead); k++)
            PyList_SetItem(frame, PyLong_AsSsize_t(PyTuple_GET_ITEM(dead, k)), Py_NewRef(Py_None));
    }
    return 0;
}

/* The calls of a program on its frame; see `smelt.ir.host_calls.run_calls`. */
PyObject *run_calls(PyObject *module, PyObject *given)
{
    PyObject *frame, *calls;
    if (!PyArg_ParseTuple(given, "O!O!:run_calls", &PyList_Type, &frame, &PyList_Type, &calls))
        return NULL;
    return run_on(frame, calls) < 0 ? NULL : Py_NewRef(Py_None);
}

/* The same on buffers, in place of the first entries of the frame: the buffers of what stands at `returns` after it. The
   last entry of the frame is not theirs. */
PyObject *run_on_buffers(PyObject *module, PyObject *given)
{
    PyObject *frame, *calls, *buffers, *returns, *avals;
    if (!PyArg_ParseTuple(given, "O!O!O!O!O!:run_on_buffers", &PyList_Type, &frame, &PyList_Type, &calls, &PyList_Type,
                          &buffers, &PyList_Type, &returns, &PyList_Type, &avals))
        return NULL;
    Py_ssize_t n = PyList_GET_SIZE(returns);
    if (PyList_GET_SIZE(buffers) >= PyList_GET_SIZE(frame) || PyList_GET_SIZE(avals) != n) {
        PyErr_SetString(PyExc_ValueError, "run_on_buffers: the frame is another program's");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(buffers); i++) {
        PyObject *array = PyObject_GetAttr(PyList_GET_ITEM(buffers, i), str_array);
        if (array != NULL && !Py_IS_TYPE(array, ndarray_type)) /* of a class of its own, such as the pool's memory */
            Py_SETREF(array, PyObject_CallOneArg(as_array, array));
        if (array == NULL || PyList_SetItem(frame, i, array) < 0)
            return NULL;
    }
    if (run_on(frame, calls) < 0)
        return NULL;
    PyObject *found = PyList_New(n);
    for (Py_ssize_t i = 0; found != NULL && i < n; i++) {
        Py_ssize_t at = PyLong_AsSsize_t(PyList_GET_ITEM(returns, i));
        PyObject *buffer = at < 0 || at >= PyList_GET_SIZE(frame) ? NULL
                         : buffer_of(PyList_GET_ITEM(frame, at), PyList_GET_ITEM(avals, i));
        if (buffer == NULL) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_IndexError, "run_on_buffers: no such entry of the frame");
            Py_CLEAR(found);
        }
        else
            PyList_SET_ITEM(found, i, buffer);
    }
    return found;
}
