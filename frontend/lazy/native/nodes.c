/* Nodes, and the order of evaluation. */

#include "core.h"
#if PY_VERSION_HEX < 0x030B0000
#include <frameobject.h> /* PyFrame_GetBack */
#endif

static int node_traverse(Node *self, visitproc visit, void *arg)
{
    Py_VISIT(self->op);
    Py_VISIT(self->attrs);
    Py_VISIT(self->inputs);
    Py_VISIT(self->avals);
    Py_VISIT(self->values);
    Py_VISIT(self->where);
    Py_VISIT(self->prepared);
    Py_VISIT(self->owner);
    return 0;
}

static int node_clear(Node *self)
{
    Py_CLEAR(self->op);
    Py_CLEAR(self->attrs);
    Py_CLEAR(self->inputs);
    Py_CLEAR(self->avals);
    Py_CLEAR(self->values);
    Py_CLEAR(self->traced);
    Py_CLEAR(self->where);
    Py_CLEAR(self->prepared);
    Py_CLEAR(self->owner);
    return 0;
}

/* Nodes that are none any more, for the next ones: memory that Python hands out anew brings its collector of cycles
   nearer, and a step of a model makes thousands of nodes and drops them all. */
#define MOST_SPARE 4096
static Node *spare[MOST_SPARE];
static int n_spare = 0;

static Node *node_memory(void)
{
#ifndef Py_GIL_DISABLED
    if (n_spare)
        return (Node *)PyObject_Init((PyObject *)spare[--n_spare], &NodeType);
#endif
    return PyObject_GC_New(Node, &NodeType);
}

static void node_release(Node *self)
{
#ifndef Py_GIL_DISABLED
    if (n_spare < MOST_SPARE) {
        spare[n_spare++] = self;
        return;
    }
#endif
    PyObject_GC_Del(self);
}

static void node_dealloc(Node *self)
{
    PyObject_GC_UnTrack(self);
    Py_TRASHCAN_BEGIN(self, node_dealloc)
    if (self->weak != NULL)
        PyObject_ClearWeakRefs((PyObject *)self);
    node_clear(self);
    node_release(self);
    Py_TRASHCAN_END
}

/* A node of these parts (borrowed, NULL for those that are not there yet); `values` is stolen.

   Python's collector of cycles looks at what is `tracked`. A value is in no cycle, nor is what a recipe makes of values:
   ops, attributes and types lead to nothing else. Most nodes are such, and to look at them all would take longer than to
   make them. What is not tracked is never freed too early; what refers to it counts references. */
PyObject *make_node(PyObject *op, PyObject *attrs, PyObject *inputs, PyObject *avals, PyObject *values,
                    PyObject *traced, PyObject *where, PyObject *prepared, int tracked)
{
    Node *node = node_memory();
    if (node == NULL) {
        Py_XDECREF(values);
        return NULL;
    }
    Py_XINCREF(op);
    Py_XINCREF(attrs);
    Py_XINCREF(inputs);
    Py_XINCREF(avals);
    Py_XINCREF(traced);
    Py_XINCREF(where);
    Py_XINCREF(prepared);
    node->op = op;
    node->attrs = attrs;
    node->inputs = inputs;
    node->avals = avals;
    node->values = values;
    node->traced = traced;
    node->where = where;
    node->prepared = prepared;
    node->owner = NULL;
    node->weak = NULL;
    node->edge = NULL;
    node->walk = 0;
    node->mark = node->edges = node->free = 0;
    if (tracked)
        PyObject_GC_Track(node);
    return (PyObject *)node;
}

/* The innermost frame that is not smelt's, from `depth` Python frames up on: (code, place), or None. */
PyObject *user_place(long depth)
{
    PyObject *number = PyLong_FromLong(depth);
    if (number == NULL)
        return NULL;
    PyObject *frame = PyObject_CallOneArg(getframe, number);
    Py_DECREF(number);
    if (frame == NULL) { /* fewer frames than that */
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    for (;;) {
        PyCodeObject *code = PyFrame_GetCode((PyFrameObject *)frame);
        PyObject *known = PyDict_GetItemWithError(internal_files, code->co_filename);
        Py_XINCREF(known);
        if (known == NULL) {
            if (PyErr_Occurred() || (known = PyObject_CallOneArg(is_internal, frame)) == NULL) {
                Py_DECREF(code);
                Py_DECREF(frame);
                return NULL;
            }
        }
        int internal = PyObject_IsTrue(known);
        Py_DECREF(known);
        if (internal == 0) {
#if PY_VERSION_HEX >= 0x030B0000
            PyObject *at = PyLong_FromLong(PyFrame_GetLasti((PyFrameObject *)frame));
#else
            PyObject *at = PyObject_GetAttrString(frame, "f_lasti");
#endif
            PyObject *found = at == NULL ? NULL : PyTuple_Pack(2, (PyObject *)code, at);
            if (found != NULL)
                PyObject_GC_UnTrack(found);
            Py_XDECREF(at);
            Py_DECREF(code);
            Py_DECREF(frame);
            return found;
        }
        Py_DECREF(code);
        PyObject *back = internal < 0 ? NULL : (PyObject *)PyFrame_GetBack((PyFrameObject *)frame);
        Py_DECREF(frame);
        if (internal < 0)
            return NULL;
        if (back == NULL)
            Py_RETURN_NONE;
        frame = back;
    }
}

static PyObject *node_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"op", "attrs", "inputs", "avals", NULL};
    PyObject *op, *attrs, *inputs, *avals;
    if (!PyTuple_GET_SIZE(args) && kwargs == NULL) /* Node.__new__(Node), as of a class of Python */
        return make_node(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1);
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO!O!:Node", names, &op, &attrs, &PyTuple_Type, &inputs,
                                     &PyTuple_Type, &avals))
        return NULL;
    PyObject *traced = PyObject_GetAttr(state, str_traced);
    if (traced == NULL)
        return NULL;
    PyObject *where = user_place(0), *node = NULL;
    if (where != NULL)
        node = make_node(op, attrs, inputs, avals, NULL, traced, where, NULL, 1);
    Py_XDECREF(where);
    Py_DECREF(traced);
    return node;
}

/* A reference to a result of a node, new; `number` is borrowed. */
PyObject *make_ref(PyObject *node, PyObject *number)
{
    PyObject *ref = PyTuple_Pack(2, node, number);
    if (ref != NULL && !PyObject_GC_IsTracked(node))
        PyObject_GC_UnTrack(ref);
    return ref;
}

/* What `detach` does. */
void node_forget(Node *self)
{
    PyObject_GC_UnTrack(self); /* now it is a value */
    PyObject *op = self->op, *attrs = self->attrs, *inputs = self->inputs, *prepared = self->prepared;
    Py_INCREF(LEAF);
    Py_INCREF(NO_ATTRS);
    Py_INCREF(empty);
    self->op = LEAF;
    self->attrs = NO_ATTRS;
    self->inputs = empty;
    self->prepared = NULL;
    Py_XDECREF(op);
    Py_XDECREF(attrs);
    Py_XDECREF(prepared);
    Py_XDECREF(inputs);
}

static PyObject *node_detach(Node *self, PyObject *unused)
{
    node_forget(self);
    Py_RETURN_NONE;
}

static PyMethodDef node_methods[] = {
    {"detach", (PyCFunction)node_detach, METH_NOARGS, "Forget the inputs: the values are there."},
    {NULL},
};

static PyMemberDef node_members[] = {
    {"op", T_OBJECT_EX, offsetof(Node, op)},
    {"attrs", T_OBJECT_EX, offsetof(Node, attrs)},
    {"inputs", T_OBJECT_EX, offsetof(Node, inputs)},
    {"avals", T_OBJECT_EX, offsetof(Node, avals)},
    {"values", T_OBJECT, offsetof(Node, values)},
    {"traced", T_OBJECT_EX, offsetof(Node, traced)},
    {"where", T_OBJECT, offsetof(Node, where)},
    {"prepared", T_OBJECT, offsetof(Node, prepared)},
    {"owner", T_OBJECT, offsetof(Node, owner)},
    {NULL},
};

PyTypeObject NodeType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "smelt._core.Node",
    .tp_basicsize = sizeof(Node),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "One op applied to results of other nodes; see `smelt.lazy.core.Node`.",
    .tp_new = node_new,
    .tp_dealloc = (destructor)node_dealloc,
    .tp_traverse = (traverseproc)node_traverse,
    .tp_clear = (inquiry)node_clear,
    .tp_weaklistoffset = offsetof(Node, weak),
    .tp_methods = node_methods,
    .tp_members = node_members,
};

/* A leaf with a buffer, whose type is `avals`. */
PyObject *make_leaf(PyObject *buffer, PyObject *avals, PyObject *traced)
{
    PyObject *values = PyList_New(1);
    if (values == NULL)
        return NULL;
    Py_INCREF(buffer);
    PyList_SET_ITEM(values, 0, buffer);
    PyObject_GC_UnTrack(values);
    return make_node(LEAF, NO_ATTRS, empty, avals, values, traced, Py_None, NULL, 0);
}

PyObject *leaf(PyObject *module, PyObject *buffer)
{
    PyObject *aval = PyObject_GetAttr(buffer, str_aval);
    if (aval == NULL)
        return NULL;
    PyObject *avals = PyTuple_Pack(1, aval), *node = NULL;
    PyObject *traced = avals == NULL ? NULL : PyObject_GetAttr(state, str_traced);
    Py_DECREF(aval);
    if (traced != NULL)
        node = make_leaf(buffer, avals, traced);
    Py_XDECREF(avals);
    Py_XDECREF(traced);
    return node;
}

/* Order of evaluation */

typedef struct {
    PyObject *node, *inputs; /* owned */
    Py_ssize_t at;
} Visit;

/* Whether to descend into a node that `seen` may have already: 1, 0, or -1 with an error. */
static int is_new(PyObject *node, PyObject *seen, PyObject *stop)
{
    if (!Py_IS_TYPE(node, &NodeType)) {
        PyErr_SetString(PyExc_TypeError, "a reference is a node and the number of a result");
        return -1;
    }
    int known = PySet_Contains(seen, node);
    if (known)
        return known < 0 ? -1 : 0;
    if (stop == Py_None)
        return ((Node *)node)->values == NULL || ((Node *)node)->values == Py_None;
    if (PySet_Check(stop)) {
        PyObject *op = ((Node *)node)->op;
        int stopped = op == LEAF || op == PARAMETER ? 1 : PySet_Contains(stop, node);
        return stopped < 0 ? -1 : !stopped;
    }
    PyObject *answer = PyObject_CallOneArg(stop, node);
    int stopped = answer == NULL ? -1 : PyObject_IsTrue(answer);
    Py_XDECREF(answer);
    return stopped < 0 ? -1 : !stopped;
}

PyObject *topological(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"outputs", "stop", NULL};
    PyObject *outputs, *stop = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:topological", names, &outputs, &stop))
        return NULL;
    return in_order(outputs, stop);
}

PyObject *in_order(PyObject *outputs, PyObject *stop)
{
    PyObject *roots, *ref, *order = NULL, *seen = NULL;
    Py_ssize_t depth = 0, room = 0;
    Visit *stack = NULL;
    int fine = 0;
    if ((roots = PyObject_GetIter(outputs)) == NULL)
        return NULL;
    if ((order = PyList_New(0)) == NULL || (seen = PySet_New(NULL)) == NULL)
        goto done;
    while ((ref = PyIter_Next(roots)) != NULL) {
        for (;;) { /* `ref` is owned here, and what it leads to is looked at */
            int descend = -1;
            if (PyTuple_Check(ref) && PyTuple_GET_SIZE(ref) == 2)
                descend = is_new(PyTuple_GET_ITEM(ref, 0), seen, stop);
            else
                PyErr_SetString(PyExc_TypeError, "a reference is a node and the number of a result");
            if (descend > 0) {
                Node *node = (Node *)PyTuple_GET_ITEM(ref, 0);
                if (depth == room) {
                    Visit *more = PyMem_Realloc(stack, (room = room ? 2 * room : 64) * sizeof(Visit));
                    if (more == NULL) {
                        PyErr_NoMemory();
                        descend = -1;
                    }
                    else
                        stack = more;
                }
                if (descend > 0 && (node->inputs == NULL || !PyTuple_Check(node->inputs))) {
                    PyErr_SetString(PyExc_TypeError, "the inputs of a node are a tuple");
                    descend = -1;
                }
                if (descend > 0 && PySet_Add(seen, (PyObject *)node) < 0)
                    descend = -1;
                if (descend > 0) {
                    Py_INCREF(node);
                    Py_INCREF(node->inputs);
                    stack[depth++] = (Visit){(PyObject *)node, node->inputs, 0};
                }
            }
            Py_DECREF(ref);
            if (descend < 0)
                goto done;
            while (depth && stack[depth - 1].at == PyTuple_GET_SIZE(stack[depth - 1].inputs)) {
                Visit *top = &stack[--depth];
                int added = PyList_Append(order, top->node);
                Py_DECREF(top->node);
                Py_DECREF(top->inputs);
                if (added < 0)
                    goto done;
            }
            if (!depth)
                break;
            ref = PyTuple_GET_ITEM(stack[depth - 1].inputs, stack[depth - 1].at++);
            Py_INCREF(ref);
        }
    }
    fine = !PyErr_Occurred();
done:
    while (depth) {
        depth--;
        Py_DECREF(stack[depth].node);
        Py_DECREF(stack[depth].inputs);
    }
    PyMem_Free(stack);
    Py_DECREF(roots);
    Py_XDECREF(seen);
    if (!fine)
        Py_CLEAR(order);
    return order;
}

/* Make room for one more of `n` nodes; 0, or -1 with an error. */
static int grow(Node ***nodes, Py_ssize_t n, Py_ssize_t *room)
{
    if (n < *room)
        return 0;
    Node **more = PyMem_Realloc(*nodes, (*room = *room ? 2 * *room : 64) * sizeof(Node *));
    if (more == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    *nodes = more;
    return 0;
}

/* Look at what references lead to: those nodes that are not computed, nor known to be free, join `found`. Runs no code of
   Python, so what holds the nodes is there to the end. */
static int add_unknown(PyObject *refs, Node ***found, Py_ssize_t *n, Py_ssize_t *room)
{
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(refs); i++) {
        PyObject *ref = PySequence_Fast_GET_ITEM(refs, i);
        Node *node = PyTuple_Check(ref) && PyTuple_GET_SIZE(ref) == 2 ? (Node *)PyTuple_GET_ITEM(ref, 0) : NULL;
        if (node == NULL || !Py_IS_TYPE((PyObject *)node, &NodeType)) {
            PyErr_SetString(PyExc_TypeError, "a reference is a node and the number of a result");
            return -1;
        }
        if (node->free || (node->values != NULL && node->values != Py_None))
            continue;
        if (grow(found, *n, room) < 0)
            return -1;
        node->free = 1;
        (*found)[(*n)++] = node;
    }
    return 0;
}

/* parameter_below(refs): see `core.py`. */
PyObject *parameter_below(PyObject *module, PyObject *refs)
{
    PyObject *roots = PySequence_Fast(refs, "references are a sequence"), *parameter = NULL;
    Node **found = NULL;
    Py_ssize_t n = 0, room = 0;
    if (roots == NULL)
        return NULL;
    int failed = add_unknown(roots, &found, &n, &room);
    for (Py_ssize_t i = 0; i < n && failed == 0 && parameter == NULL; i++) {
        if (found[i]->op == PARAMETER)
            parameter = Py_NewRef((PyObject *)found[i]);
        else if (found[i]->inputs != NULL && PyTuple_Check(found[i]->inputs))
            failed = add_unknown(found[i]->inputs, &found, &n, &room);
    }
    if (failed || parameter != NULL)
        while (n)
            found[--n]->free = 0;
    PyMem_Free(found);
    Py_DECREF(roots);
    return failed ? NULL : parameter != NULL ? parameter : Py_NewRef(Py_None);
}
