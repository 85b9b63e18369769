/* Plans of an evaluation op by op: see `steps.py` for what they are, and steps.c for how they run.

   A plan is made by a walk over the graph that runs no code of Python: it leaves marks in the nodes, which are good for
   as long as nobody else walks. Everything that running the plan needs is in the plan. */

#include "plan.h"

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

/* References in a list or tuple lead once more to nodes of the last walk. */
static void lead(PyObject *refs)
{
    if (refs == NULL || !(PyTuple_Check(refs) || PyList_Check(refs)))
        return;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(refs); i++) {
        PyObject *ref = PySequence_Fast_GET_ITEM(refs, i);
        Node *child = is_ref(ref) ? (Node *)PyTuple_GET_ITEM(ref, 0) : NULL;
        if (child != NULL && child->walk == walks && !IS_SET(child->values) && child->edge == ref)
            child->edges++;
    }
}

static int lead_from_functions(PyObject *attrs, PyObject **seen);

/* What a function and those inside of it refer to. 0, or -1 with an error. */
static int lead_from(PyObject *function, PyObject **seen)
{
    if (*seen == NULL && (*seen = PySet_New(NULL)) == NULL)
        return -1;
    int known = PySet_Contains(*seen, function);
    if (known || PySet_Add(*seen, function) < 0)
        return known > 0 ? 0 : -1;
    static const char *const names[] = {"captured", "outputs", "parameters", "body"};
    int failed = 0;
    for (int k = 0; k < 4 && !failed; k++) {
        PyObject *found = PyObject_GetAttrString(function, names[k]);
        failed = found == NULL;
        if (k < 3)
            lead(found);
        for (Py_ssize_t i = 0; k >= 2 && !failed && i < PyList_GET_SIZE(found); i++) {
            PyObject *item = PyList_GET_ITEM(found, i);
            Node *node = (Node *)PyTuple_GET_ITEM(item, 0);
            PyObject *inputs = k == 2 ? node->inputs : PyTuple_GET_ITEM(item, 3); /* a parameter names the argument */
            if (node->walk != walks || IS_SET(node->values) || node->inputs != inputs)
                lead(inputs);
            failed = k == 3 && lead_from_functions(PyTuple_GET_ITEM(item, 2), seen) < 0;
        }
        Py_XDECREF(found);
    }
    return failed ? -1 : 0;
}

/* What the functions among attributes refer to. 0, or -1 with an error. */
static int lead_from_functions(PyObject *attrs, PyObject **seen)
{
    PyObject *name, *value;
    Py_ssize_t at = 0;
    while (attrs != NULL && PyDict_Check(attrs) && PyDict_Next(attrs, &at, &name, &value)) {
        if (Py_IS_TYPE(value, function_type) && lead_from(value, seen) < 0)
            return -1;
        for (Py_ssize_t i = 0; PyTuple_Check(value) && i < PyTuple_GET_SIZE(value); i++)
            if (Py_IS_TYPE(PyTuple_GET_ITEM(value, i), function_type) && lead_from(PyTuple_GET_ITEM(value, i), seen) < 0)
                return -1;
    }
    return 0;
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
    /* An array and the nodes made from it share one reference, so if there are more than the nodes, and the functions
       that they apply, account for, the array lives. */
    PyObject *seen = NULL;
    int failed = 0;
    for (Py_ssize_t i = 0; i < n && !failed; i++)
        failed = lead_from_functions(order[i]->attrs, &seen) < 0;
    Py_XDECREF(seen);
    if (failed)
        return -1;
    for (Py_ssize_t i = 0; i < n; i++)
        if (order[i]->edge != NULL && Py_REFCNT(order[i]->edge) > order[i]->edges)
            self->flags[i] |= KEPT;
    /* Each result has a reference of its own, of which the walk may have met one: others have the node besides that and
       the plan. */
    for (Py_ssize_t i = 0; i < n; i++)
        if (PyTuple_GET_SIZE(order[i]->avals) > 1 && Py_REFCNT(order[i]) > 2)
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
    {"claim", (PyCFunction)plan_claim, METH_O, "Take the nodes for an evaluation, if nobody has any of them."},
    {"values", (PyCFunction)plan_values, METH_O, "The buffers of operands that have values."},
    {"give", (PyCFunction)plan_give, METH_VARARGS, "Give the nodes that are kept these buffers."},
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
    .tp_doc = "A part of a graph, to be run op by op; see `smelt.lazy.execution.steps.Plan`.",
    .tp_dealloc = (destructor)plan_dealloc,
    .tp_as_sequence = &plan_sequence,
    .tp_methods = plan_methods,
    .tp_members = plan_members,
};
