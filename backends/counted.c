/* A class whose instances can be found: they are links of a ring. See `backends/counting.py`.

   An instance of a class of Python that stands on this one is let go in the order: its slots, then the link, then
   its memory. In between it has no references, and is passed over. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>

typedef struct Link {
    struct Link *before, *after;
} Link;

typedef struct {
    PyObject_HEAD
    Link link;
} Counted;

static Link ring = {&ring, &ring};

static Counted *of_link(Link *link) { return (Counted *)((char *)link - offsetof(Counted, link)); }

static void unlink_from_ring(Link *link)
{
    link->before->after = link->after;
    link->after->before = link->before;
    link->before = link->after = link;
}

static PyObject *counted_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    Counted *self = (Counted *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->link.before = ring.before;
    self->link.after = &ring;
    ring.before->after = &self->link;
    ring.before = &self->link;
    return (PyObject *)self;
}

static void counted_dealloc(PyObject *self)
{
    unlink_from_ring(&((Counted *)self)->link);
    Py_TYPE(self)->tp_free(self);
}

static PyTypeObject CountedType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "smelt._counted.Counted",
    .tp_doc = "Instances of classes on this one can be found.",
    .tp_basicsize = sizeof(Counted),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_new = counted_new,
    .tp_dealloc = counted_dealloc,
};

static PyObject *instances(PyObject *module, PyObject *none)
{
    PyObject *found = PyList_New(0);
    if (found == NULL)
        return NULL;
    for (Link *link = ring.after; link != &ring; link = link->after) {
        PyObject *x = (PyObject *)of_link(link);
        if (Py_REFCNT(x) > 0 && PyList_Append(found, x) < 0) {
            Py_DECREF(found);
            return NULL;
        }
    }
    return found;
}

static PyObject *forget(PyObject *module, PyObject *x)
{
    if (!PyObject_TypeCheck(x, &CountedType))
        return PyErr_Format(PyExc_TypeError, "forget: needs a Counted, got %.100s", Py_TYPE(x)->tp_name);
    unlink_from_ring(&((Counted *)x)->link);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"instances", instances, METH_NOARGS, "All instances that are alive and not forgotten, the oldest first."},
    {"forget", forget, METH_O, "Leave an instance out from now on."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "smelt._counted", .m_size = -1, .m_methods = methods,
};

PyMODINIT_FUNC PyInit__counted(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL || PyType_Ready(&CountedType) < 0 ||
        PyModule_AddObjectRef(module, "Counted", (PyObject *)&CountedType) < 0) {
        Py_XDECREF(module);
        return NULL;
    }
    return module;
}
