/* Evaluation op by op: see `steps.py` for what it does.

   A plan is made by a walk over the graph that runs no code of Python: it leaves marks in the nodes, which are good for
   as long as nobody else walks. Everything that running the plan needs is in the plan. */

#include "core.h"

/* As in steps.py. */
#define SPREADS 1
#define REPEATS 2
#define SEVERAL 4

#define KEPT 1   /* its value is wanted after the run */
#define SHORT 2  /* a broadcast that need not be made: what reads it takes its operand */

typedef struct {
    PyObject_HEAD
    Py_ssize_t n, n_codes, n_leaves;
    Node **nodes;         /* owned */
    PyObject **prepared;  /* owned; those of a plan that is not plain are not there */
    PyObject **leaves;    /* owned: buffers */
    int *first, *codes;   /* operands of node i: codes[first[i]] up to codes[first[i + 1]]; from 0 on a node, else ~leaf */
    long long *inputs;    /* the same for the key: equal numbers are equal operands; above, the number of the result */
    int *uses;
    char *flags;
    char plain;
    double work, seconds;
    Py_ssize_t ops;
    PyObject *owner;
} Plan;

/* What the last walk found: borrowed. */
typedef struct {
    Node *node;
    Py_ssize_t at;
} Visit;

static Node **order;
static Visit *stack;
static Py_ssize_t order_room, stack_room;
static unsigned long long walks;

static int no_reference(void)
{
    PyErr_SetString(PyExc_TypeError, "a reference is a node and the number of a result");
    return -1;
}

static int is_ref(PyObject *ref)
{
    return PyTuple_Check(ref) && PyTuple_GET_SIZE(ref) == 2 && Py_IS_TYPE(PyTuple_GET_ITEM(ref, 0), &NodeType);
}

#define IS_SET(object) ((object) != NULL && (object) != Py_None)

/* Whether an evaluation has the node in work: its list is emptied at the end. */
static int is_owned(Node *node)
{
    return node->owner != NULL && PyList_CheckExact(node->owner) && PyList_GET_SIZE(node->owner);
}

/* Nodes below `refs` without values, in order; their number, or -1 with an error. */
static Py_ssize_t walk(PyObject *refs)
{
    Py_ssize_t n = 0, depth = 0;
    walks++;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(refs); i++) {
        PyObject *ref = PyList_GET_ITEM(refs, i);
        for (;;) {
            if (!is_ref(ref))
                return no_reference();
            Node *node = (Node *)PyTuple_GET_ITEM(ref, 0);
            if (node->walk != walks && !IS_SET(node->values)) {
                if (node->inputs == NULL || !PyTuple_Check(node->inputs) || node->avals == NULL ||
                    !PyTuple_Check(node->avals))
                    return no_reference();
                if (depth == stack_room) {
                    Visit *more = PyMem_Realloc(stack, (stack_room ? 2 * stack_room : 256) * sizeof(Visit));
                    if (more == NULL) {
                        PyErr_NoMemory();
                        return -1;
                    }
                    stack = more;
                    stack_room = stack_room ? 2 * stack_room : 256;
                }
                node->walk = walks;
                node->edge = NULL;
                node->edges = 0;
                stack[depth++] = (Visit){node, 0};
            }
            while (depth && stack[depth - 1].at == PyTuple_GET_SIZE(stack[depth - 1].node->inputs)) {
                if (n == order_room) {
                    Node **more = PyMem_Realloc(order, (order_room ? 2 * order_room : 256) * sizeof(Node *));
                    if (more == NULL) {
                        PyErr_NoMemory();
                        return -1;
                    }
                    order = more;
                    order_room = order_room ? 2 * order_room : 256;
                }
                stack[--depth].node->mark = (int)n;
                order[n++] = stack[depth].node;
            }
            if (!depth)
                break;
            ref = PyTuple_GET_ITEM(stack[depth - 1].node->inputs, stack[depth - 1].at++);
        }
        if (n > INT_MAX / 2) {
            PyErr_SetString(PyExc_OverflowError, "the graph has too many nodes");
            return -1;
        }
    }
    return n;
}

/* What computes a node: borrowed; NULL if that is not known, Py_False if it takes more than a call. */
static PyObject *prepared_of(Node *node)
{
    PyObject *known = node->prepared;
    if (known != NULL && PyList_CheckExact(known) && PyList_GET_SIZE(known))
        known = PyList_GET_ITEM(known, 0);
    return known == NULL || (known != Py_False && !Py_IS_TYPE(known, prepared_type)) ? NULL : known;
}

/* Ask for what computes the nodes of the last walk of which it is not known; how many there were, or -1. */
static Py_ssize_t ask(Py_ssize_t n)
{
    Py_ssize_t count = 0;
    int failed = 0;
    for (Py_ssize_t i = 0; i < n; i++)
        count += prepared_of(order[i]) == NULL;
    if (!count)
        return 0;
    Node **unknown = PyMem_New(Node *, count);
    if (unknown == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    count = 0;
    for (Py_ssize_t i = 0; i < n; i++)
        if (prepared_of(order[i]) == NULL) {
            Py_INCREF(order[i]);
            unknown[count++] = order[i];
        }
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!failed) { /* other threads may run in here, and evaluate nodes */
            PyObject *done = prepared_of(unknown[i]) != NULL ? Py_NewRef(Py_None)
                                                             : PyObject_CallOneArg(prepare, (PyObject *)unknown[i]);
            failed = done == NULL;
            Py_XDECREF(done);
        }
        Py_DECREF(unknown[i]);
    }
    PyMem_Free(unknown);
    return failed ? -1 : count;
}

static void plan_dealloc(Plan *self)
{
    for (Py_ssize_t i = 0; i < self->n; i++) {
        Py_XDECREF(self->nodes[i]);
        Py_XDECREF(self->prepared[i]);
    }
    for (Py_ssize_t i = 0; i < self->n_leaves; i++)
        Py_XDECREF(self->leaves[i]);
    PyMem_Free(self->nodes);
    PyMem_Free(self->leaves);
    Py_XDECREF(self->owner);
    PyObject_Free(self);
}

/* Fill a plan with the nodes of the last walk. 0, or -1 with an error. */
static int fill(Plan *self, PyObject *refs)
{
    Py_ssize_t n = self->n, at = 0, numbered = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *known = prepared_of(order[i]);
        Py_INCREF(order[i]);
        self->nodes[i] = order[i];
        if (self->owner == NULL && is_owned(order[i]))
            self->owner = Py_NewRef(order[i]->owner);
        if (known == Py_False || known == NULL)
            self->plain = 0;
        else {
            self->prepared[i] = Py_NewRef(known);
            self->work += PyFloat_AsDouble(PyTuple_GET_ITEM(known, 5));
            self->ops += PyLong_AsSsize_t(PyTuple_GET_ITEM(known, 9));
            self->seconds += PyFloat_AsDouble(PyTuple_GET_ITEM(known, 6));
        }
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *inputs = order[i]->inputs;
        self->first[i] = (int)at;
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(inputs); k++, at++) {
            PyObject *ref = PyTuple_GET_ITEM(inputs, k);
            Node *child = (Node *)PyTuple_GET_ITEM(ref, 0);
            Py_ssize_t result = PyLong_AsSsize_t(PyTuple_GET_ITEM(ref, 1));
            if (IS_SET(child->values)) {
                if (!PyList_Check(child->values) || result < 0 || result >= PyList_GET_SIZE(child->values))
                    return no_reference();
                int known = child->walk == walks;
                if (!known) {
                    child->walk = walks;
                    child->mark = (int)numbered++;
                    child->edges = -1;
                }
                self->inputs[at] = ~((long long)child->mark | ((long long)result << 32));
                if (result == 0 && child->edges >= 0)
                    self->codes[at] = ~child->edges;
                else {
                    self->codes[at] = ~(int)self->n_leaves;
                    if (result == 0)
                        child->edges = (int)self->n_leaves;
                    self->leaves[self->n_leaves++] = Py_NewRef(PyList_GET_ITEM(child->values, result));
                }
                continue;
            }
            self->codes[at] = child->mark;
            self->inputs[at] = child->mark | ((long long)result << 32);
            self->uses[child->mark]++;
            if (result < 0 || result >= PyTuple_GET_SIZE(child->avals))
                return no_reference();
            if (child->edge == NULL) {
                child->edge = ref;
                child->edges = 1;
            }
            else if (child->edge == ref)
                child->edges++;
            else
                self->flags[child->mark] |= KEPT; /* several references lead to it: nothing is known of them */
        }
    }
    self->first[n] = (int)at;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(refs); i++) {
        Node *root = (Node *)PyTuple_GET_ITEM(PyList_GET_ITEM(refs, i), 0);
        if (!IS_SET(root->values))
            self->flags[root->mark] |= KEPT;
    }
    /* An array and the nodes made from it share one reference, so if there are more than the nodes account for, the
       array lives. */
    for (Py_ssize_t i = 0; i < n; i++)
        if (order[i]->edge != NULL && Py_REFCNT(order[i]->edge) > order[i]->edges)
            self->flags[i] |= KEPT;
    return 0;
}

/* Which broadcasts need not be made. */
static void shorten(Plan *self)
{
    Py_ssize_t repeats = 0;
    for (Py_ssize_t i = 0; i < self->n; i++) {
        long manner = PyLong_AsLong(PyTuple_GET_ITEM(self->prepared[i], 4));
        if (manner & REPEATS && !(self->flags[i] & KEPT)) {
            self->flags[i] |= SHORT;
            repeats++;
        }
    }
    for (Py_ssize_t i = 0; repeats && i < self->n; i++) {
        int spreads = PyLong_AsLong(PyTuple_GET_ITEM(self->prepared[i], 4)) & SPREADS, whole = 0;
        for (int k = self->first[i]; k < self->first[i + 1]; k++) {
            int code = self->codes[k];
            if (code < 0 || !(self->flags[code] & SHORT))
                whole = 1;
            else if (!spreads)
                self->flags[code] &= ~SHORT;
        }
        if (spreads && !whole && self->first[i] < self->first[i + 1])
            self->flags[self->codes[self->first[i]]] &= ~SHORT;
    }
}

PyObject *plan(PyObject *module, PyObject *refs)
{
    if (!PyList_Check(refs)) {
        PyErr_SetString(PyExc_TypeError, "references come in a list");
        return NULL;
    }
    Py_ssize_t n, asked;
    do {
        if ((n = walk(refs)) <= 0)
            return n < 0 ? NULL : Py_NewRef(Py_None);
    } while ((asked = ask(n)) > 0);
    if (asked < 0)
        return NULL;
    Py_ssize_t edges = 0;
    for (Py_ssize_t i = 0; i < n; i++)
        edges += PyTuple_GET_SIZE(order[i]->inputs);
    if (edges > INT_MAX / 2) {
        PyErr_SetString(PyExc_OverflowError, "the graph has too many nodes");
        return NULL;
    }
    Plan *self = PyObject_New(Plan, &PlanType);
    if (self == NULL)
        return NULL;
    /* One block: what is widest comes first. */
    size_t bytes = 2 * n * sizeof(void *) + edges * sizeof(long long) + (2 * n + 1 + edges) * sizeof(int) + n;
    char *block = PyMem_Calloc(1, bytes);
    self->leaves = PyMem_Calloc(edges ? edges : 1, sizeof(PyObject *));
    self->nodes = (Node **)block;
    self->n = self->n_leaves = 0;
    self->owner = NULL;
    if (block == NULL || self->leaves == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    self->n = n;
    self->n_codes = edges;
    self->prepared = (PyObject **)(self->nodes + n);
    self->inputs = (long long *)(self->prepared + n);
    self->first = (int *)(self->inputs + edges);
    self->codes = self->first + n + 1;
    self->uses = self->codes + edges;
    self->flags = (char *)(self->uses + n);
    self->plain = 1;
    self->work = self->seconds = 0;
    self->ops = 0;
    if (fill(self, refs) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    if (self->plain)
        shorten(self);
    return (PyObject *)self;
}

/* Running */

/* Arguments for which a call needs no memory of its own. */
#define USUAL_ARGUMENTS 24

/* The error of a step, with the op and the line where there was no memory. */
static void explain(Plan *self, Py_ssize_t i)
{
    if (!PyErr_ExceptionMatches(PyExc_MemoryError))
        return;
    PyObject *type, *error, *trace;
    PyErr_Fetch(&type, &error, &trace);
    PyErr_NormalizeException(&type, &error, &trace);
    PyObject *op = PyTuple_GET_ITEM(self->prepared[i], 8), *where = self->nodes[i]->where;
    PyObject *better = PyObject_CallFunctionObjArgs(step_failed, op, error, where ? where : Py_None, NULL);
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
static PyObject *buffer_of(PyObject *array, PyObject *aval)
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

/* Give the nodes their values. */
static int settle(Plan *self, PyObject **results)
{
    int fine = 1;
    for (Py_ssize_t i = 0; fine && i < self->n; i++)
        if (self->flags[i] & KEPT) {
            PyObject *values = values_of(self, results[i], i);
            Py_DECREF(results[i]);
            results[i] = values;
            fine = values != NULL;
        }
    PyObject *recording = fine ? PyObject_GetAttr(state, str_recording) : NULL, *deferred = NULL;
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
        else if (!is_owned(node))
            node_forget(node);
    }
    Py_XDECREF(deferred);
    return fine ? 0 : -1;
}

static PyObject *plan_run(Plan *self, PyObject *unused)
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
    fine = fine && settle(self, results) == 0;
    for (Py_ssize_t i = 0; results != NULL && i < self->n; i++)
        Py_XDECREF(results[i]);
    PyMem_Free(results);
    if (!fine)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *plan_order(Plan *self, PyObject *unused)
{
    PyObject *found = PyList_New(self->n);
    for (Py_ssize_t i = 0; found != NULL && i < self->n; i++)
        PyList_SET_ITEM(found, i, Py_NewRef((PyObject *)self->nodes[i]));
    return found;
}

static PyObject *plan_held(Plan *self, PyObject *unused)
{
    PyObject *found = PyList_New(0);
    for (Py_ssize_t i = 0; found != NULL && i < self->n; i++)
        if (self->flags[i] & KEPT && PyList_Append(found, (PyObject *)self->nodes[i]) < 0)
            Py_CLEAR(found);
    return found;
}

static PyObject *plan_key(Plan *self, PyObject *unused)
{
    if (!self->plain) {
        PyErr_SetString(PyExc_ValueError, "the plan is not plain");
        return NULL;
    }
    PyObject *key = PyBytes_FromStringAndSize(NULL, (self->n + self->n_codes) * sizeof(long long) + self->n);
    if (key == NULL)
        return NULL;
    long long *at = (long long *)PyBytes_AS_STRING(key);
    for (Py_ssize_t i = 0; i < self->n; i++)
        at[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(self->prepared[i], 7));
    memcpy(at + self->n, self->inputs, self->n_codes * sizeof(long long));
    char *kept = (char *)(at + self->n + self->n_codes);
    for (Py_ssize_t i = 0; i < self->n; i++)
        kept[i] = self->flags[i] & KEPT;
    return key;
}

static Py_ssize_t plan_length(Plan *self)
{
    return self->n;
}

static PySequenceMethods plan_sequence = {.sq_length = (lenfunc)plan_length};

static PyMethodDef plan_methods[] = {
    {"run", (PyCFunction)plan_run, METH_NOARGS, "Compute the nodes, and give those that are kept their values."},
    {"order", (PyCFunction)plan_order, METH_NOARGS, "The nodes in order."},
    {"kept", (PyCFunction)plan_held, METH_NOARGS, "The nodes whose values are wanted after the run."},
    {"key", (PyCFunction)plan_key, METH_NOARGS, "Equal for plans of the same structure."},
    {NULL},
};

static PyMemberDef plan_members[] = {
    {"plain", T_BOOL, offsetof(Plan, plain), READONLY},
    {"work", T_DOUBLE, offsetof(Plan, work), READONLY},
    {"seconds", T_DOUBLE, offsetof(Plan, seconds), READONLY},
    {"ops", T_PYSSIZET, offsetof(Plan, ops), READONLY},
    {"owner", T_OBJECT, offsetof(Plan, owner), READONLY},
    {NULL},
};

PyTypeObject PlanType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "smelt._core.Plan",
    .tp_basicsize = sizeof(Plan),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "A part of a graph, to be run op by op; see `smelt.lazy.steps.Plan`.",
    .tp_dealloc = (destructor)plan_dealloc,
    .tp_as_sequence = &plan_sequence,
    .tp_methods = plan_methods,
    .tp_members = plan_members,
};

/* Take what `steps.py` has. */
PyObject *connect_steps(PyObject *module, PyObject *args)
{
    PyObject *buffer, *array, *kind;
    if (!PyArg_ParseTuple(args, "O!O!O!OOOO:connect_steps", &PyType_Type, &buffer, &PyType_Type, &array, &PyType_Type, &kind,
                          &prepare, &as_buffer, &as_array, &step_failed))
        return NULL;
    PyObject *kept[] = {buffer, array, kind, prepare, as_buffer, as_array, step_failed};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        Py_INCREF(kept[i]); /* for as long as the process lives */
    buffer_type = (PyTypeObject *)buffer;
    ndarray_type = (PyTypeObject *)array;
    prepared_type = (PyTypeObject *)kind;
    if ((at_address = slot_of(buffer, "address")) < 0 || (at_aval = slot_of(buffer, "aval")) < 0 ||
        (at_home = slot_of(buffer, "home")) < 0 || (at_array = slot_of(buffer, "array")) < 0)
        return NULL;
    Py_RETURN_NONE;
}
