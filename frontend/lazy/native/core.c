/* The module: what Python gives, and what it finds. See core.h. */

#include "core.h"

PyObject *LEAF, *PARAMETER, *NUMBER, *NO_ATTRS, *state, *settings, *internal_files, *is_internal, *getframe, *numbers;
PyObject *shadows, *as_seen;
PyObject *record, *number_ref, *dtype_type, *str_traced, *str_compiling, *str_check, *str_place, *str_aval;
PyObject *str_dtype, *str_recording, *str_array, *str_ref, *zero, *zero_texts[2], *empty;
PyTypeObject *array_type, *aval_type, *buffer_type, *function_type, *ndarray_type, *prepared_type;
PyObject *prepare, *as_buffer, *as_array, *step_failed;
Py_ssize_t ref_at, made_at, shape_at, dtype_at, size_at;

/* The offset of a slot of a class of Python; -1 with an error where there is none. */
Py_ssize_t slot_of(PyObject *type, const char *name)
{
    PyObject *found = PyObject_GetAttrString(type, name);
    Py_ssize_t at = -1;
    if (found != NULL && Py_IS_TYPE(found, &PyMemberDescr_Type))
        at = ((PyMemberDescrObject *)found)->d_member->offset;
    else if (found != NULL)
        PyErr_Format(PyExc_TypeError, "%s is no slot", name);
    Py_XDECREF(found);
    return at;
}

static PyObject *connect(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"leaf", "number", "no_attrs", "state", "settings", "internal_files", "is_internal",
                            "getframe", "dtype", "aval", "shadows", "as_seen", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "$OOOOO!OOOOO!O!O:connect", names, &LEAF, &NUMBER, &NO_ATTRS, &state,
                                     &PyDict_Type, &settings, &internal_files, &is_internal, &getframe, &dtype_type, &PyType_Type, &aval_type,
                                     &PyList_Type, &shadows, &as_seen))
        return NULL;
    PyObject *kept[] = {LEAF, NUMBER, NO_ATTRS, state, settings, internal_files, is_internal, getframe,
                        dtype_type, (PyObject *)aval_type, shadows, as_seen};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        Py_INCREF(kept[i]); /* for as long as the process lives */
    PyObject *aval = (PyObject *)aval_type;
    if ((shape_at = slot_of(aval, "shape")) < 0 || (dtype_at = slot_of(aval, "dtype")) < 0 ||
        (size_at = slot_of(aval, "size")) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *connect_arrays(PyObject *module, PyObject *args)
{
    PyObject *type;
    if (!PyArg_ParseTuple(args, "O!OO!:connect_arrays", &PyType_Type, &type, &number_ref, &PyDict_Type, &numbers))
        return NULL;
    if ((ref_at = slot_of(type, "_ref")) < 0 || (made_at = slot_of(type, "_made")) < 0)
        return NULL;
    Py_INCREF(type);
    Py_INCREF(number_ref);
    Py_INCREF(numbers);
    array_type = (PyTypeObject *)type;
    Py_RETURN_NONE;
}

static PyObject *place(PyObject *module, PyObject *depth)
{
    long frames = PyLong_AsLong(depth);
    return frames == -1 && PyErr_Occurred() ? NULL : user_place(frames);
}

static PyMethodDef functions[] = {
    {"leaf", leaf, METH_O, "A node that is a value."},
    {"evaluated", evaluated, METH_O, "Arrays that are these values."},
    {"topological", (PyCFunction)(void (*)(void))topological, METH_VARARGS | METH_KEYWORDS,
     "See `smelt.lazy.core.topological`."},
    {"parameter_below", parameter_below, METH_O, "See `smelt.lazy.core.parameter_below`."},
    {"call", (PyCFunction)(void (*)(void))call, METH_FASTCALL, "See `smelt.lazy.core.call`."},
    {"structure_key", structure_key, METH_VARARGS, "See `smelt.lazy.graph.structure_key`."},
    {"snapshot", snapshot, METH_O, "See `smelt.lazy.graph.snapshot`."},
    {"inputs_of", inputs_of, METH_VARARGS, "See `smelt.lazy.graph.inputs_of`."},
    {"sizeless_key", sizeless_key, METH_O, "See `smelt.lazy.sizeless.sizeless_key`."},
    {"dependent_on", dependent_on, METH_VARARGS, "See `smelt.lazy.graph.dependent_on`."},
    {"plan", plan, METH_O, "See `smelt.lazy.execution.steps.plan`."},
    {"run_on_buffers", run_on_buffers, METH_VARARGS, "See `smelt.lazy.execution.short_runs`."},
    {"run_calls", run_calls, METH_VARARGS, "See `smelt.ir.host_calls.run_calls`."},
    {"buffers_like", (PyCFunction)(void (*)(void))buffers_like, METH_FASTCALL, "See `smelt.lazy.alike`."},
    {"put_like", (PyCFunction)(void (*)(void))put_like, METH_FASTCALL, "See `smelt.lazy.alike`."},
    {"arrange", arrange, METH_VARARGS, "See arranged.c."},
    {"erf_of", erf_of, METH_VARARGS, "See elements.c."},
    {"erf_of_single", erf_of_single, METH_VARARGS, "See elements.c."},
    {"erfinv_of_single", erfinv_of_single, METH_VARARGS, "See elements.c."},
    {"fourier", fourier, METH_VARARGS, "See fourier.c."},
    {"fourier_columns", fourier_columns, METH_VARARGS, "See fourier.c."},
    {"vector_bytes", vector_bytes, METH_NOARGS, "See vectors.h."},
    {"row_extrema", row_extrema, METH_VARARGS, "See row_extrema.c."},
    {"row_sums", row_sums, METH_VARARGS, "See row_sums.c."},
    {"running", running, METH_VARARGS, "See running.c."},
    {"convert_halves", convert_halves, METH_VARARGS, "See halves.c."},
    {"random_words", random_words, METH_VARARGS, "See threefry.c."},
    {"radix", radix, METH_VARARGS, "See radix.c."},
    {"select", select_elements, METH_VARARGS, "See selected.c."},
    {"signs", signs, METH_VARARGS, "See selected.c."},
    {"small_matrices", small_matrices, METH_VARARGS, "See small_matrices.c."},
    {"shift_words", shift_words, METH_VARARGS, "See elements.c."},
    {"short_rows", short_rows, METH_VARARGS, "See short_rows.c."},
    {"write_rows", write_rows, METH_VARARGS, "See written_rows.c."},
    {"connect_elements", connect_elements, METH_VARARGS, "Take what `error_functions.py` has."},
    {"connect_keys", connect_keys, METH_VARARGS, "Take what `graph.py` has."},
    {"connect_sizeless", connect_sizeless, METH_VARARGS, "Take what `sizeless.py` has."},
    {"connect_steps", connect_steps, METH_VARARGS, "Take what `steps.py` has."},
    {"user_place", place, METH_O, "See `smelt.lazy.core.user_place`."},
    {"connect", (PyCFunction)(void (*)(void))connect, METH_VARARGS | METH_KEYWORDS, "Take what `core.py` has."},
    {"connect_recipes", connect_recipes, METH_VARARGS, "Take what `recipes.py` has."},
    {"connect_arrays", connect_arrays, METH_VARARGS, "Take what `arrays.py` has."},
    {NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "smelt._core",
    .m_doc = "The core of recording in C; `smelt.lazy.core` says what it does.",
    .m_size = -1,
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit__core(void)
{
    str_traced = PyUnicode_InternFromString("traced");
    str_compiling = PyUnicode_InternFromString("compiling");
    str_check = PyUnicode_InternFromString("check");
    str_aval = PyUnicode_InternFromString("aval");
    str_place = PyUnicode_InternFromString("place");
    str_recording = PyUnicode_InternFromString("recording");
    str_array = PyUnicode_InternFromString("array");
    str_ref = PyUnicode_InternFromString("_ref");
    str_dtype = PyUnicode_InternFromString("dtype");
    zero_texts[0] = PyUnicode_InternFromString("0.0");
    zero_texts[1] = PyUnicode_InternFromString("-0.0");
    zero = PyLong_FromLong(0);
    empty = PyTuple_New(0);
    if (PyErr_Occurred() || PyType_Ready(&NodeType) < 0 || PyType_Ready(&MemoryType) < 0 || PyType_Ready(&PlanType) < 0)
        return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL)
        return NULL;
    Py_INCREF(&NodeType);
    Py_INCREF(&PlanType);
    Py_INCREF(&MemoryType);
    if (PyModule_AddObject(module, "Node", (PyObject *)&NodeType) < 0 ||
        PyModule_AddObject(module, "Plan", (PyObject *)&PlanType) < 0 ||
        PyModule_AddObject(module, "Memory", (PyObject *)&MemoryType) < 0 ||
        PyModule_AddIntConstant(module, "INTERFACE", INTERFACE) < 0)
        Py_CLEAR(module);
    return module;
}
