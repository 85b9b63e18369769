/* The core of recording in C: what `core.py` says in Python, and nothing else. Both run all tests (SMELT_CORE).

   Here are `Node`, `leaf`, `evaluated`, `topological`, `Memory` and `call`; see there for what they mean. What is rare
   (a recipe to be made, a Python number or a file name that was not met yet) is asked of `core.py`.

   All of it runs under the interpreter's lock. Releasing a chain of nodes does not recurse: that is what the trashcan
   of CPython is for, through which the tuples between nodes go too. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <structmember.h>
#if PY_VERSION_HEX < 0x030B0000
#include <frameobject.h> /* PyFrame_GetBack */
#endif

/* Raised when anything that `core.py` counts on changes. */
#define INTERFACE 3

/* As in core.py. */
#define MOST_ENTRIES 64
#define MOST_PARTS 512

static PyObject *LEAF, *NUMBER, *NO_ATTRS, *state, *settings, *internal_files, *is_internal, *getframe, *numbers;
static PyObject *record, *number_ref, *dtype_type, *str_traced, *str_compiling, *str_check, *str_place, *str_aval;
static PyObject *str_dtype, *zero, *zero_texts[2], *empty;
static PyTypeObject *array_type;
static Py_ssize_t ref_at, made_at, shape_at, dtype_at; /* offsets of slots */

#define SLOT(object, offset) (*(PyObject **)((char *)(object) + (offset)))

/* Nodes */

typedef struct {
    PyObject_HEAD
    PyObject *op, *attrs, *inputs, *avals, *values, *traced, *where, *weak;
} Node;

static PyTypeObject NodeType;

static int node_traverse(Node *self, visitproc visit, void *arg)
{
    Py_VISIT(self->op);
    Py_VISIT(self->attrs);
    Py_VISIT(self->inputs);
    Py_VISIT(self->avals);
    Py_VISIT(self->values);
    Py_VISIT(self->where);
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
    return 0;
}

static void node_dealloc(Node *self)
{
    PyObject_GC_UnTrack(self);
    Py_TRASHCAN_BEGIN(self, node_dealloc)
    if (self->weak != NULL)
        PyObject_ClearWeakRefs((PyObject *)self);
    node_clear(self);
    PyObject_GC_Del(self);
    Py_TRASHCAN_END
}

/* A node of these parts (borrowed, NULL for those that are not there yet); `values` is stolen. */
static PyObject *make_node(PyObject *op, PyObject *attrs, PyObject *inputs, PyObject *avals, PyObject *values,
                           PyObject *traced, PyObject *where)
{
    Node *node = PyObject_GC_New(Node, &NodeType);
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
    node->op = op;
    node->attrs = attrs;
    node->inputs = inputs;
    node->avals = avals;
    node->values = values;
    node->traced = traced;
    node->where = where;
    node->weak = NULL;
    PyObject_GC_Track(node);
    return (PyObject *)node;
}

/* The innermost frame that is not smelt's, from `depth` Python frames up on: (code, place), or None. */
static PyObject *user_place(long depth)
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
        return make_node(NULL, NULL, NULL, NULL, NULL, NULL, NULL);
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO!O!:Node", names, &op, &attrs, &PyTuple_Type, &inputs,
                                     &PyTuple_Type, &avals))
        return NULL;
    PyObject *traced = PyObject_GetAttr(state, str_traced);
    if (traced == NULL)
        return NULL;
    PyObject *where = user_place(0), *node = NULL;
    if (where != NULL)
        node = make_node(op, attrs, inputs, avals, NULL, traced, where);
    Py_XDECREF(where);
    Py_DECREF(traced);
    return node;
}

static PyObject *node_detach(Node *self, PyObject *unused)
{
    PyObject *op = self->op, *attrs = self->attrs, *inputs = self->inputs;
    Py_INCREF(LEAF);
    Py_INCREF(NO_ATTRS);
    Py_INCREF(empty);
    self->op = LEAF;
    self->attrs = NO_ATTRS;
    self->inputs = empty;
    Py_XDECREF(op);
    Py_XDECREF(attrs);
    Py_XDECREF(inputs);
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
    {NULL},
};

static PyTypeObject NodeType = {
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
static PyObject *make_leaf(PyObject *buffer, PyObject *avals, PyObject *traced)
{
    PyObject *values = PyList_New(1);
    if (values == NULL)
        return NULL;
    Py_INCREF(buffer);
    PyList_SET_ITEM(values, 0, buffer);
    return make_node(LEAF, NO_ATTRS, empty, avals, values, traced, Py_None);
}

static PyObject *leaf(PyObject *module, PyObject *buffer)
{
    PyObject *aval = PyObject_GetAttr(buffer, str_aval);
    if (aval == NULL)
        return NULL;
    PyObject *avals = PyTuple_Pack(1, aval), *traced = PyObject_GetAttr(state, str_traced), *node = NULL;
    Py_DECREF(aval);
    if (avals != NULL && traced != NULL)
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
    PyObject *answer = PyObject_CallOneArg(stop, node);
    int stopped = answer == NULL ? -1 : PyObject_IsTrue(answer);
    Py_XDECREF(answer);
    return stopped < 0 ? -1 : !stopped;
}

static PyObject *topological(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"outputs", "stop", NULL};
    PyObject *outputs, *stop = Py_None, *roots, *ref, *order = NULL, *seen = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:topological", names, &outputs, &stop))
        return NULL;
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

/* Memories and keys */

typedef struct {
    PyObject_HEAD
    PyObject *function, *numbers, *outside, *inside;
} Memory;

static int memory_traverse(Memory *self, visitproc visit, void *arg)
{
    Py_VISIT(self->function);
    Py_VISIT(self->numbers);
    Py_VISIT(self->outside);
    Py_VISIT(self->inside);
    return 0;
}

static int memory_clear(Memory *self)
{
    Py_CLEAR(self->function);
    Py_CLEAR(self->numbers);
    Py_CLEAR(self->outside);
    Py_CLEAR(self->inside);
    return 0;
}

static void memory_dealloc(Memory *self)
{
    PyObject_GC_UnTrack(self);
    memory_clear(self);
    PyObject_GC_Del(self);
}

static PyTypeObject MemoryType;

static PyObject *memory_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *function, *given;
    if (!PyArg_ParseTuple(args, "OO!:Memory", &function, &PyFrozenSet_Type, &given))
        return NULL;
    Memory *self = PyObject_GC_New(Memory, &MemoryType);
    if (self == NULL)
        return NULL;
    Py_INCREF(function);
    Py_INCREF(given);
    self->function = function;
    self->numbers = given;
    self->outside = PyDict_New();
    self->inside = PyDict_New();
    PyObject_GC_Track(self);
    if (self->outside == NULL || self->inside == NULL)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static PyMemberDef memory_members[] = {
    {"function", T_OBJECT_EX, offsetof(Memory, function), READONLY},
    {"numbers", T_OBJECT_EX, offsetof(Memory, numbers), READONLY},
    {"outside", T_OBJECT_EX, offsetof(Memory, outside), READONLY},
    {"inside", T_OBJECT_EX, offsetof(Memory, inside), READONLY},
    {NULL},
};

static PyTypeObject MemoryType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "smelt._core.Memory",
    .tp_basicsize = sizeof(Memory),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "A function and its recipes by arguments; see `smelt.lazy.core.Memory`.",
    .tp_new = memory_new,
    .tp_dealloc = (destructor)memory_dealloc,
    .tp_traverse = (traverseproc)memory_traverse,
    .tp_clear = (inquiry)memory_clear,
    .tp_members = memory_members,
};

/* A key under construction: its parts, and what the nodes are applied to. All are borrowed but the `owned`. */
typedef struct {
    PyObject *parts[MOST_PARTS + 8], *inputs[MOST_PARTS / 2 + 4], *owned[MOST_PARTS / 2 + 4];
    Py_ssize_t n_parts, n_inputs, n_owned;
} Key;

static void key_free(Key *key)
{
    while (key->n_owned)
        Py_DECREF(key->owned[--key->n_owned]);
}

/* The parts of an item: 1, 0 where it can be no part of a key, or -1 with an error. */
static int key_add(Key *key, PyObject *x, PyObject *operands)
{
    PyTypeObject *type = Py_TYPE(x);
    PyObject **parts = key->parts + key->n_parts;
    if (key->n_parts + 2 > MOST_PARTS)
        return 0;
    if (type == array_type) {
        PyObject *ref = SLOT(x, ref_at);
        if (ref == NULL || !PyTuple_Check(ref) || PyTuple_GET_SIZE(ref) != 2)
            return 0;
        Node *node = (Node *)PyTuple_GET_ITEM(ref, 0);
        Py_ssize_t at = PyLong_AsSsize_t(PyTuple_GET_ITEM(ref, 1));
        if (!Py_IS_TYPE(node, &NodeType) || node->avals == NULL || !PyTuple_Check(node->avals) || at < 0 ||
            at >= PyTuple_GET_SIZE(node->avals)) {
            PyErr_SetString(PyExc_TypeError, "a handle refers to no result of a node");
            return -1;
        }
        PyObject *aval = PyTuple_GET_ITEM(node->avals, at);
        /* The handle may be given another reference, or die, while a key is compared. */
        Py_INCREF(ref);
        key->owned[key->n_owned++] = ref;
        key->inputs[key->n_inputs++] = ref;
        parts[0] = SLOT(aval, shape_at);
        parts[1] = SLOT(aval, dtype_at);
        key->n_parts += 2;
        return 1;
    }
    int is_float = type == &PyFloat_Type;
    if ((is_float || type == &PyLong_Type) && operands != NULL) {
        int is_operand = PySet_Contains(operands, (PyObject *)type);
        if (is_operand < 0)
            return -1;
        if (is_operand) {
            key->inputs[key->n_inputs++] = x;
            parts[0] = (PyObject *)type;
            parts[1] = (PyObject *)array_type;
            key->n_parts += 2;
            return 1;
        }
    }
    if (type == &PyLong_Type || x == Py_None || type == &PyBool_Type || type == &PyUnicode_Type ||
        (PyObject *)type == dtype_type || x == Py_Ellipsis) {
        parts[0] = (PyObject *)type;
        parts[1] = x;
        key->n_parts += 2;
        return 1;
    }
    if (is_float) {
        double value = PyFloat_AS_DOUBLE(x);
        parts[0] = (PyObject *)type;
        parts[1] = x;
        if (value == 0 || value != value) { /* 0.0, -0.0, a NaN */
            PyObject *text = PyObject_Str(x);
            if (text == NULL)
                return -1;
            key->owned[key->n_owned++] = parts[1] = text;
        }
        key->n_parts += 2;
        return 1;
    }
    if (type == &PyTuple_Type || type == &PyList_Type) {
        Py_ssize_t n = PySequence_Fast_GET_SIZE(x);
        if (n > MOST_ENTRIES || key->n_parts > MOST_ENTRIES)
            return 0;
        PyObject *count = PyLong_FromSsize_t(n);
        if (count == NULL)
            return -1;
        key->owned[key->n_owned++] = parts[1] = count;
        parts[0] = (PyObject *)type;
        key->n_parts += 2;
        for (Py_ssize_t i = 0; i < n; i++) { /* nothing in here runs code of others, so the list stays */
            int done = key_add(key, PySequence_Fast_GET_ITEM(x, i), NULL);
            if (done != 1)
                return done;
        }
        return 1;
    }
    if (type == &PySlice_Type) {
        PySliceObject *slice = (PySliceObject *)x;
        parts[0] = (PyObject *)type;
        parts[1] = Py_None;
        key->n_parts += 2;
        int done = key_add(key, slice->start, NULL);
        if (done == 1)
            done = key_add(key, slice->stop, NULL);
        return done == 1 ? key_add(key, slice->step, NULL) : done;
    }
    return 0;
}

/* Recipes */

static PyObject *handle(PyObject *ref, PyObject *traced, int is_argument)
{
    PyObject *found = array_type->tp_alloc(array_type, 0);
    if (found == NULL)
        return NULL;
    Py_INCREF(ref);
    SLOT(found, ref_at) = ref;
    if (is_argument && traced != zero && PyObject_IsTrue(traced)) {
        Py_INCREF(traced);
        SLOT(found, made_at) = traced;
    }
    return found;
}

/* A new reference to a Python number as an array of a dtype. */
static PyObject *number_of(PyObject *value, PyObject *attrs, PyObject *avals, PyObject *traced, int compiling)
{
    PyObject *dtype = PyDict_GetItemWithError(attrs, str_dtype);
    if (dtype == NULL)
        return NULL;
    if (!compiling) {
        PyObject *shown = value;
        if (PyFloat_CheckExact(value) && PyFloat_AS_DOUBLE(value) == 0)
            shown = zero_texts[Py_IS_TYPE(value, &PyFloat_Type) && copysign(1.0, PyFloat_AS_DOUBLE(value)) < 0];
        PyObject *key = PyTuple_Pack(3, shown, (PyObject *)Py_TYPE(value), dtype);
        if (key == NULL)
            return NULL;
        PyObject *buffer = PyDict_GetItemWithError(numbers, key);
        Py_XINCREF(buffer);
        Py_DECREF(key);
        if (buffer != NULL) {
            PyObject *node = make_leaf(buffer, avals, traced);
            Py_DECREF(buffer);
            PyObject *ref = node == NULL ? NULL : PyTuple_Pack(2, node, zero);
            Py_XDECREF(node);
            return ref;
        }
        if (PyErr_Occurred())
            return NULL;
    }
    return PyObject_CallFunctionObjArgs(number_ref, value, dtype, NULL);
}

#define VALUES 128

/* Make the nodes of a recipe; what its function returns. */
static PyObject *follow(PyObject *recipe, PyObject **inputs, Py_ssize_t given, PyObject *traced, int compiling)
{
    PyObject *steps = PyTuple_GET_ITEM(recipe, 0), *results = PyTuple_GET_ITEM(recipe, 1), *result = NULL;
    Py_ssize_t n = PyList_GET_SIZE(steps), count = given, room = VALUES;
    PyObject *local[VALUES], **values = local;
    PyObject *where = user_place(1);
    if (where == NULL)
        return NULL;
    for (Py_ssize_t i = 0; i < n; i++)
        count += PyTuple_GET_SIZE(PyTuple_GET_ITEM(PyList_GET_ITEM(steps, i), 3));
    if (count > room && (values = PyMem_New(PyObject *, count)) == NULL) {
        Py_DECREF(where);
        return PyErr_NoMemory();
    }
    for (count = 0; count < given; count++) {
        values[count] = inputs[count];
        Py_INCREF(inputs[count]);
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *step = PyList_GET_ITEM(steps, i), *op = PyTuple_GET_ITEM(step, 0), *attrs = PyTuple_GET_ITEM(step, 1);
        PyObject *operands = PyTuple_GET_ITEM(step, 2), *avals = PyTuple_GET_ITEM(step, 3);
        PyObject *value = PyTuple_GET_ITEM(step, 4), *node;
        if (op == NUMBER) {
            PyObject *place = PyDict_GetItemWithError(attrs, str_place);
            if (place == NULL)
                goto done;
            PyObject *ref = number_of(inputs[PyLong_AsSsize_t(place)], attrs, avals, traced, compiling);
            if (ref == NULL)
                goto done;
            values[count++] = ref;
            continue;
        }
        if (value != Py_None)
            node = make_leaf(value, avals, traced);
        else {
            Py_ssize_t m = PyTuple_GET_SIZE(operands);
            PyObject *refs = PyTuple_New(m);
            if (refs == NULL)
                goto done;
            for (Py_ssize_t k = 0; k < m; k++) {
                PyObject *ref = values[PyLong_AsSsize_t(PyTuple_GET_ITEM(operands, k))];
                Py_INCREF(ref);
                PyTuple_SET_ITEM(refs, k, ref);
            }
            node = make_node(op, attrs, refs, avals, NULL, traced, where);
            Py_DECREF(refs);
        }
        if (node == NULL)
            goto done;
        Py_ssize_t several = PyTuple_GET_SIZE(avals);
        for (Py_ssize_t k = 0; k < several; k++) {
            PyObject *number = k ? PyLong_FromSsize_t(k) : zero;
            PyObject *ref = number == NULL ? NULL : PyTuple_Pack(2, node, number);
            if (k)
                Py_XDECREF(number);
            if (ref == NULL) {
                Py_DECREF(node);
                goto done;
            }
            values[count++] = ref;
        }
        Py_DECREF(node);
    }
    if (PyLong_CheckExact(results)) {
        Py_ssize_t place = PyLong_AsSsize_t(results);
        result = handle(values[place], traced, place < given);
    }
    else {
        PyObject *places = PyTuple_GET_ITEM(results, 1);
        Py_ssize_t m = PyList_GET_SIZE(places);
        int is_list = PyTuple_GET_ITEM(results, 0) == (PyObject *)&PyList_Type;
        result = is_list ? PyList_New(m) : PyTuple_New(m);
        for (Py_ssize_t k = 0; result != NULL && k < m; k++) {
            Py_ssize_t place = PyLong_AsSsize_t(PyList_GET_ITEM(places, k));
            PyObject *found = handle(values[place], traced, place < given);
            if (found == NULL)
                Py_CLEAR(result);
            else if (is_list)
                PyList_SET_ITEM(result, k, found);
            else
                PyTuple_SET_ITEM(result, k, found);
        }
    }
done:
    while (count)
        Py_DECREF(values[--count]);
    if (values != local)
        PyMem_Free(values);
    Py_DECREF(where);
    return result;
}

static PyObject *evaluated(PyObject *module, PyObject *buffers)
{
    PyObject *found = NULL, *traced = PyObject_GetAttr(state, str_traced);
    PyObject *given = traced == NULL ? NULL : PySequence_List(buffers);
    if (given != NULL)
        found = PyList_New(PyList_GET_SIZE(given));
    for (Py_ssize_t i = 0; found != NULL && i < PyList_GET_SIZE(given); i++) {
        PyObject *buffer = PyList_GET_ITEM(given, i), *aval = PyObject_GetAttr(buffer, str_aval), *x = NULL;
        PyObject *avals = aval == NULL ? NULL : PyTuple_Pack(1, aval);
        PyObject *node = avals == NULL ? NULL : make_leaf(buffer, avals, traced);
        PyObject *ref = node == NULL ? NULL : PyTuple_Pack(2, node, zero);
        if (ref != NULL)
            x = handle(ref, traced, 0);
        Py_XDECREF(aval);
        Py_XDECREF(avals);
        Py_XDECREF(node);
        Py_XDECREF(ref);
        if (x == NULL)
            Py_CLEAR(found);
        else
            PyList_SET_ITEM(found, i, x);
    }
    Py_XDECREF(given);
    Py_XDECREF(traced);
    return found;
}

static PyObject *call(PyObject *module, PyObject *const *given, Py_ssize_t n_given)
{
    if (n_given != 3 || !Py_IS_TYPE(given[0], &MemoryType) || !PyTuple_CheckExact(given[1]) ||
        !PyDict_CheckExact(given[2])) {
        PyErr_SetString(PyExc_TypeError, "call(memory, args, kwargs)");
        return NULL;
    }
    Memory *memory = (Memory *)given[0];
    PyObject *args = given[1], *kwargs = given[2], *result = NULL, *tuple = NULL, *traced = NULL, *recipe, *name, *x;
    PyObject *check = PyDict_GetItemWithError(settings, str_check), *names = NULL;
    Key key;
    key.n_parts = key.n_inputs = key.n_owned = 0;
    if (check == NULL && PyErr_Occurred())
        return NULL;
    int usable = check != Py_True;
    PyObject *operands = PySet_GET_SIZE(memory->numbers) ? memory->numbers : NULL;
    for (Py_ssize_t i = 0; usable == 1 && i < PyTuple_GET_SIZE(args); i++)
        usable = key_add(&key, PyTuple_GET_ITEM(args, i), operands);
    if (usable == 1 && PyDict_GET_SIZE(kwargs)) {
        Py_ssize_t at = 0, i = 0;
        if ((names = PyTuple_New(PyDict_GET_SIZE(kwargs))) == NULL)
            goto done;
        while (usable == 1 && PyDict_Next(kwargs, &at, &name, &x)) {
            Py_INCREF(name);
            PyTuple_SET_ITEM(names, i++, name);
            usable = key_add(&key, x, NULL);
        }
        key.parts[key.n_parts++] = names;
    }
    if (usable < 0)
        goto done;
    if (usable == 0) {
        result = PyObject_Call(memory->function, args, kwargs);
        goto done;
    }
    PyObject *compiling = PyObject_GetAttr(state, str_compiling);
    if (compiling == NULL)
        goto done;
    int inside = compiling != zero && PyObject_IsTrue(compiling);
    Py_DECREF(compiling);
    PyObject *recipes = inside ? memory->inside : memory->outside;
    if ((tuple = PyTuple_New(key.n_parts)) == NULL)
        goto done;
    for (Py_ssize_t i = 0; i < key.n_parts; i++) {
        Py_INCREF(key.parts[i]);
        PyTuple_SET_ITEM(tuple, i, key.parts[i]);
    }
    recipe = PyDict_GetItemWithError(recipes, tuple);
    Py_XINCREF(recipe);
    if (recipe == NULL) {
        if (PyErr_Occurred())
            goto done;
        recipe = PyObject_CallFunctionObjArgs(record, (PyObject *)memory, recipes, tuple, args, kwargs, NULL);
        if (recipe == NULL)
            goto done;
    }
    if (recipe == Py_None)
        result = PyObject_Call(memory->function, args, kwargs);
    else if ((traced = PyObject_GetAttr(state, str_traced)) != NULL)
        result = follow(recipe, key.inputs, key.n_inputs, traced, inside);
    Py_DECREF(recipe);
done:
    Py_XDECREF(traced);
    Py_XDECREF(tuple);
    Py_XDECREF(names);
    key_free(&key);
    return result;
}

/* What Python gives, and the module */

/* The offset of a slot of a class of Python; -1 with an error where there is none. */
static Py_ssize_t slot_of(PyObject *type, const char *name)
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
                            "getframe", "record", "dtype", "aval", NULL};
    PyObject *aval;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "$OOOOO!OOOOOO:connect", names, &LEAF, &NUMBER, &NO_ATTRS, &state,
                                     &PyDict_Type, &settings, &internal_files, &is_internal, &getframe, &record, &dtype_type, &aval))
        return NULL;
    PyObject *kept[] = {LEAF, NUMBER, NO_ATTRS, state, settings, internal_files, is_internal, getframe, record,
                        dtype_type, aval};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        Py_INCREF(kept[i]); /* for as long as the process lives */
    if ((shape_at = slot_of(aval, "shape")) < 0 || (dtype_at = slot_of(aval, "dtype")) < 0)
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
    {"call", (PyCFunction)(void (*)(void))call, METH_FASTCALL, "See `smelt.lazy.core.call`."},
    {"user_place", place, METH_O, "See `smelt.lazy.core.user_place`."},
    {"connect", (PyCFunction)(void (*)(void))connect, METH_VARARGS | METH_KEYWORDS, "Take what `core.py` has."},
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
    str_dtype = PyUnicode_InternFromString("dtype");
    zero_texts[0] = PyUnicode_InternFromString("0.0");
    zero_texts[1] = PyUnicode_InternFromString("-0.0");
    zero = PyLong_FromLong(0);
    empty = PyTuple_New(0);
    if (PyErr_Occurred() || PyType_Ready(&NodeType) < 0 || PyType_Ready(&MemoryType) < 0)
        return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL)
        return NULL;
    Py_INCREF(&NodeType);
    Py_INCREF(&MemoryType);
    if (PyModule_AddObject(module, "Node", (PyObject *)&NodeType) < 0 ||
        PyModule_AddObject(module, "Memory", (PyObject *)&MemoryType) < 0 ||
        PyModule_AddIntConstant(module, "INTERFACE", INTERFACE) < 0)
        Py_CLEAR(module);
    return module;
}
