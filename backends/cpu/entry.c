/* Programs that the calling thread runs in one call of machine code: what `running.Program.run` and `Buffer.empties` do,
   in a quarter of the time. See `entry.py`; and `subnormals.py` for the mode of the processor that is set here. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <limits.h>
#include <stdint.h>
#include <structmember.h>

/* As in host.py: the number of members and the counter's address stand before the addresses of arrays. */
#define TABLE 2
/* Arguments and results of a program whose table lies on the stack. */
#define FEW 64

/* The register with the mode, and its bits that make zeros of subnormal operands and results. */
#if defined(__x86_64__)
#include <xmmintrin.h>
typedef unsigned Mode;
#define FLUSHES 0x8040u
static inline Mode mode(void) { return _mm_getcsr(); }
static inline void set_mode(Mode to) { _mm_setcsr(to); }
#elif defined(__aarch64__)
typedef uint64_t Mode;
#define FLUSHES (UINT64_C(1) << 24)
static inline Mode mode(void)
{
    Mode found;
    __asm__ volatile("mrs %0, fpcr" : "=r"(found));
    return found;
}
static inline void set_mode(Mode to) { __asm__ volatile("msr fpcr, %0" : : "r"(to) : "memory"); }
#else
typedef unsigned Mode;
#define FLUSHES 0
static inline Mode mode(void) { return 0; }
static inline void set_mode(Mode to) { (void)to; }
#endif

#define SLOT(object, offset) (*(PyObject **)((char *)(object) + (offset)))

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    void (*function)(void **);
    Py_ssize_t arguments, results;
    int keeps_lock, wide; /* whether the function takes the addresses of all arrays as one array */
    PyObject *blanks;     /* of the results; see `Buffer.blanks`. None: an argument's memory, or another result's */
} Entry;

static PyTypeObject *buffer_type;
static PyObject *make_buffer, *empty_array, *settings, *no_arguments, *str_address, *str_flushes;
static Py_ssize_t aval_at, array_at, address_at, home_at; /* offsets of slots of buffers */

static Py_ssize_t slot_of(PyObject *type, const char *name)
{
    PyObject *found = PyObject_GetAttrString(type, name);
    if (found == NULL)
        return -1;
    Py_ssize_t offset = -1;
    if (Py_IS_TYPE(found, &PyMemberDescr_Type))
        offset = ((PyMemberDescrObject *)found)->d_member->offset;
    else
        PyErr_Format(PyExc_TypeError, "%s is no slot", name);
    Py_DECREF(found);
    return offset;
}

static int address_of(PyObject *buffer, uint64_t *address)
{
    PyObject *found = PyObject_TypeCheck(buffer, buffer_type) ? Py_XNewRef(SLOT(buffer, address_at)) : NULL;
    if (found == NULL && (found = PyObject_GetAttr(buffer, str_address)) == NULL) /* it is on a device alone */
        return -1;
    *address = PyLong_AsUnsignedLongLong(found);
    Py_DECREF(found);
    return *address == (uint64_t)-1 && PyErr_Occurred() ? -1 : 0;
}

/* A buffer for a result; see `Buffer.empties`. */
static PyObject *made(PyObject *blank, uint64_t *address)
{
    PyObject *aval = PyTuple_GET_ITEM(blank, 0), *dtype = PyTuple_GET_ITEM(blank, 2), *buffer, *number;
    if (dtype == Py_None) {
        buffer = PyObject_CallOneArg(make_buffer, aval);
        if (buffer != NULL && address_of(buffer, address) < 0)
            Py_CLEAR(buffer);
        return buffer;
    }
    PyObject *given[] = {PyTuple_GET_ITEM(blank, 1), dtype};
    PyObject *array = PyObject_Vectorcall(empty_array, given, 2, NULL);
    if (array == NULL)
        return NULL;
    Py_buffer view;
    if (PyObject_GetBuffer(array, &view, PyBUF_WRITABLE) < 0) {
        Py_DECREF(array);
        return NULL;
    }
    *address = (uint64_t)(uintptr_t)view.buf;
    PyBuffer_Release(&view);
    number = PyLong_FromUnsignedLongLong(*address);
    buffer = number == NULL ? NULL : buffer_type->tp_new(buffer_type, no_arguments, NULL);
    if (buffer == NULL) {
        Py_XDECREF(number);
        Py_DECREF(array);
        return NULL;
    }
    SLOT(buffer, address_at) = number;
    SLOT(buffer, array_at) = array;
    SLOT(buffer, aval_at) = Py_NewRef(aval);
    SLOT(buffer, home_at) = Py_NewRef(Py_None);
    return buffer;
}

static PyObject *empties(PyObject *module, PyObject *blanks)
{
    if (!PyTuple_Check(blanks))
        return PyErr_Format(PyExc_TypeError, "a tuple of blanks");
    Py_ssize_t count = PyTuple_GET_SIZE(blanks);
    PyObject *found = PyList_New(count);
    uint64_t address;
    for (Py_ssize_t i = 0; found != NULL && i < count; i++) {
        PyObject *blank = PyTuple_GET_ITEM(blanks, i);
        PyObject *buffer = blank == Py_None ? Py_NewRef(blank) : made(blank, &address);
        if (buffer == NULL)
            Py_CLEAR(found);
        else
            PyList_SET_ITEM(found, i, buffer);
    }
    return found;
}

/* Where this thread is in `flushing`, the mode that it had before; else NULL. */
static _Thread_local const Mode *callers;

/* Machine code on a table, with zeros for subnormal numbers; called as it is, by pointers to its arguments. */
static void flushing(void **arguments)
{
    void (*function)(void **) = *(void (**)(void **))arguments[0];
    const Mode before = mode(), *outer = callers;
    callers = &before;
    set_mode(before | FLUSHES);
    function(*(void ***)arguments[1]);
    set_mode(before);
    callers = outer;
}

/* What machine code calls for handlers of signals: Python, and threads that it makes, have the caller's mode. */
static int check_signals(void)
{
    const Mode *outer = callers;
    if (outer == NULL)
        return PyErr_CheckSignals();
    Mode now = mode();
    callers = NULL;
    set_mode(*outer);
    int found = PyErr_CheckSignals();
    set_mode(now);
    callers = outer;
    return found;
}

static PyObject *entry_call(PyObject *callable, PyObject *const *given, size_t flags, PyObject *names)
{
    Entry *self = (Entry *)callable;
    uint64_t few[TABLE + FEW + 3], *values = few;
    void *few_pointers[TABLE + FEW + 2], **pointers = few_pointers;
    Py_ssize_t arrays = self->arguments + self->results, n = TABLE + arrays + 2, i = 0;
    if (PyVectorcall_NARGS(flags) != 2 || names != NULL)
        return PyErr_Format(PyExc_TypeError, "a program takes buffers, and the address of its arena");
    uint64_t arena = PyLong_AsUnsignedLongLong(given[1]);
    if (arena == (uint64_t)-1 && PyErr_Occurred())
        return NULL;
    PyObject *flushes = PyObject_GetAttr(settings, str_flushes);
    if (flushes == NULL)
        return NULL;
    Py_DECREF(flushes); /* True or False, which live on */
    PyObject *inputs = PySequence_Tuple(given[0]), *outputs = NULL; /* a list might change meanwhile */
    if (inputs == NULL)
        return NULL;
    if (arrays > FEW) {
        values = PyMem_Malloc((size_t)(n + 1) * sizeof(uint64_t));
        pointers = PyMem_Malloc((size_t)n * sizeof(void *));
        if (values == NULL || pointers == NULL) {
            PyErr_NoMemory();
            goto done;
        }
    }
    uint64_t *at = values + TABLE;
    if (PyTuple_GET_SIZE(inputs) != self->arguments) {
        PyErr_Format(PyExc_TypeError, "a program takes %zd buffers", self->arguments);
        goto done;
    }
    for (; i < self->arguments; i++)
        if (address_of(PyTuple_GET_ITEM(inputs, i), at + i) < 0)
            goto done;
    outputs = PyList_New(self->results);
    for (Py_ssize_t k = 0; outputs != NULL && k < self->results; k++) {
        PyObject *blank = PyTuple_GET_ITEM(self->blanks, k), *buffer;
        at[i] = 0;
        buffer = blank == Py_None ? Py_NewRef(Py_None) : made(blank, at + i);
        i++;
        if (buffer == NULL)
            Py_CLEAR(outputs);
        else
            PyList_SET_ITEM(outputs, k, buffer);
    }
    if (outputs == NULL)
        goto done;
    values[0] = 1;
    values[1] = (uint64_t)(uintptr_t)(at + arrays + 1);
    at[arrays] = arena;
    at[arrays + 1] = 0;
    for (i = 0; i < n; i++)
        pointers[i] = values + i;
    if (self->wide) { /* see `host.HostFunction.frame` */
        values[n] = (uint64_t)(uintptr_t)at;
        pointers[TABLE] = values + n;
        pointers[TABLE + 1] = at + arrays;
    }
    void (*function)(void **) = self->function;
    void **table = pointers;
    void *flushed[] = {&function, &table};
    void (*called)(void **) = flushes == Py_True ? flushing : function;
    void **arguments = flushes == Py_True ? flushed : pointers;
    if (self->keeps_lock)
        called(arguments);
    else {
        Py_BEGIN_ALLOW_THREADS
        called(arguments);
        Py_END_ALLOW_THREADS
    }
done:
    if (values != few)
        PyMem_Free(values);
    if (pointers != few_pointers)
        PyMem_Free(pointers);
    Py_DECREF(inputs);
    return outputs;
}

static PyObject *entry_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    unsigned long long function;
    Py_ssize_t arguments;
    int keeps_lock, wide;
    PyObject *blanks;
    if (!PyArg_ParseTuple(args, "KnppO!:Entry", &function, &arguments, &keeps_lock, &wide, &PyTuple_Type, &blanks))
        return NULL;
    if (buffer_type == NULL)
        return PyErr_Format(PyExc_TypeError, "Entry: nobody has called connect");
    Py_ssize_t results = PyTuple_GET_SIZE(blanks);
    if (arguments < 0 || arguments > INT_MAX || results > INT_MAX)
        return PyErr_Format(PyExc_ValueError, "Entry: %zd arguments and %zd results", arguments, results);
    for (Py_ssize_t i = 0; i < results; i++) {
        PyObject *blank = PyTuple_GET_ITEM(blanks, i);
        if (blank != Py_None && (!PyTuple_Check(blank) || PyTuple_GET_SIZE(blank) != 3))
            return PyErr_Format(PyExc_TypeError, "Entry: a blank is an aval, a shape and a dtype, or None");
    }
    Entry *self = (Entry *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->vectorcall = entry_call;
    self->function = (void (*)(void **))(uintptr_t)function;
    self->arguments = arguments;
    self->results = results;
    self->keeps_lock = keeps_lock;
    self->wide = wide;
    self->blanks = Py_NewRef(blanks);
    return (PyObject *)self;
}

static void entry_dealloc(Entry *self)
{
    Py_XDECREF(self->blanks);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyTypeObject EntryType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "smelt._entry.Entry",
    .tp_doc = "A program that the calling thread runs alone: called with buffers and its arena, it returns its results.",
    .tp_basicsize = sizeof(Entry),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_new = entry_new,
    .tp_dealloc = (destructor)entry_dealloc,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Entry, vectorcall),
};

static PyObject *connect(PyObject *module, PyObject *args)
{
    PyObject *type, *make, *empty, *has_flag;
    if (!PyArg_ParseTuple(args, "O!OOO:connect", &PyType_Type, &type, &make, &empty, &has_flag))
        return NULL;
    if ((aval_at = slot_of(type, "aval")) < 0 || (array_at = slot_of(type, "array")) < 0 ||
        (address_at = slot_of(type, "address")) < 0 || (home_at = slot_of(type, "home")) < 0)
        return NULL;
    buffer_type = (PyTypeObject *)Py_NewRef(type); /* for as long as the process lives */
    make_buffer = Py_NewRef(make);
    empty_array = Py_NewRef(empty);
    settings = Py_NewRef(has_flag);
    Py_RETURN_NONE;
}

static PyObject *flushing_address(PyObject *self, PyObject *nothing)
{
    return PyLong_FromVoidPtr((void *)flushing);
}

static PyObject *check_signals_address(PyObject *self, PyObject *nothing)
{
    return PyLong_FromVoidPtr((void *)check_signals);
}

static PyMethodDef methods[] = {
    {"check_signals", check_signals_address, METH_NOARGS, "The address of `check_signals`."},
    {"connect", connect, METH_VARARGS,
     "Take the class of buffers, what makes one of an aval, numpy.empty, and the settings."},
    {"flushing", flushing_address, METH_NOARGS, "The address of `flushing`."},
    {"empties", empties, METH_O, "Buffers for a tuple of blanks; None where that has None."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "smelt._entry", .m_size = -1, .m_methods = methods,
};

PyMODINIT_FUNC PyInit__entry(void)
{
    str_address = PyUnicode_InternFromString("address");
    str_flushes = PyUnicode_InternFromString("flush_subnormals");
    no_arguments = PyTuple_New(0);
    PyObject *module = str_address == NULL || str_flushes == NULL || no_arguments == NULL ? NULL : PyModule_Create(&definition);
    if (module == NULL || PyType_Ready(&EntryType) < 0 ||
        PyModule_AddObjectRef(module, "Entry", (PyObject *)&EntryType) < 0) {
        Py_XDECREF(module);
        return NULL;
    }
    return module;
}
