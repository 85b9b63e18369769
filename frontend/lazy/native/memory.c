/* Functions that remember: keys and recipes. */

#include "core.h"
#include <math.h>

/* As in core.py and recipes.py. */
#define MOST_ENTRIES 64
#define MOST_RECIPES 1000
#define MOST_PARTS 512

typedef struct {
    PyObject_HEAD
    PyObject *function, *numbers, *outside, *inside, *families;
} Memory;

static int memory_traverse(Memory *self, visitproc visit, void *arg)
{
    Py_VISIT(self->function);
    Py_VISIT(self->numbers);
    Py_VISIT(self->outside);
    Py_VISIT(self->inside);
    Py_VISIT(self->families);
    return 0;
}

static int memory_clear(Memory *self)
{
    Py_CLEAR(self->function);
    Py_CLEAR(self->numbers);
    Py_CLEAR(self->outside);
    Py_CLEAR(self->inside);
    Py_CLEAR(self->families);
    return 0;
}

static void memory_dealloc(Memory *self)
{
    PyObject_GC_UnTrack(self);
    memory_clear(self);
    PyObject_GC_Del(self);
}

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
    self->families = PyDict_New();
    PyObject_GC_Track(self);
    if (self->outside == NULL || self->inside == NULL || self->families == NULL)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static PyMemberDef memory_members[] = {
    {"function", T_OBJECT_EX, offsetof(Memory, function), READONLY},
    {"numbers", T_OBJECT_EX, offsetof(Memory, numbers), READONLY},
    {"outside", T_OBJECT_EX, offsetof(Memory, outside), READONLY},
    {"inside", T_OBJECT_EX, offsetof(Memory, inside), READONLY},
    {"families", T_OBJECT_EX, offsetof(Memory, families), READONLY},
    {NULL},
};

PyTypeObject MemoryType = {
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
    PyObject *parts[MOST_PARTS + 8], *inputs[MOST_PARTS / 2 + 4], *owned[MOST_PARTS + 8];
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
            PyObject *entry = PySequence_Fast_GET_ITEM(x, i);
            if (type == &PyList_Type && key->n_parts + 2 <= MOST_PARTS) /* but until the key is made it may change */
                key->owned[key->n_owned++] = Py_NewRef(entry);
            int done = key_add(key, entry, NULL);
            if (done != 1)
                return done;
        }
        return 1;
    }
    if (type == &PySlice_Type) {
        PySliceObject *slice = (PySliceObject *)x;
        if (Py_TYPE(slice->start) == array_type || Py_TYPE(slice->stop) == array_type ||
            Py_TYPE(slice->step) == array_type) /* their values are asked for, so they are no operands */
            return 0;
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
            PyObject *ref = node == NULL ? NULL : make_ref(node, zero);
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
            int tracked = 0;
            for (Py_ssize_t k = 0; k < m; k++) {
                PyObject *ref = values[PyLong_AsSsize_t(PyTuple_GET_ITEM(operands, k))];
                Py_INCREF(ref);
                PyTuple_SET_ITEM(refs, k, ref);
                tracked |= PyObject_GC_IsTracked(PyTuple_GET_ITEM(ref, 0));
            }
            if (!tracked && m)
                PyObject_GC_UnTrack(refs);
            /* A list of one: what computes such nodes, once it is known. */
            PyObject *memo = PyTuple_GET_ITEM(step, 5), *known = Py_NewRef(PyList_GET_ITEM(memo, 0));
            node = make_node(op, attrs, refs, avals, NULL, traced, where, known == Py_None ? memo : known,
                             tracked);
            Py_DECREF(known); /* the list may have got another while there was made room for the node */
            Py_DECREF(refs);
        }
        if (node == NULL)
            goto done;
        Py_ssize_t several = PyTuple_GET_SIZE(avals);
        for (Py_ssize_t k = 0; k < several; k++) {
            PyObject *number = k ? PyLong_FromSsize_t(k) : zero;
            PyObject *ref = number == NULL ? NULL : make_ref(node, number);
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
        PyObject *container = PyTuple_GET_ITEM(results, 0);
        if (result != NULL && !is_list && container != (PyObject *)&PyTuple_Type) /* a named tuple */
            Py_SETREF(result, PyObject_CallObject(container, result));
    }
done:
    while (count)
        Py_DECREF(values[--count]);
    if (values != local)
        PyMem_Free(values);
    Py_DECREF(where);
    return result;
}

/* An array that is a value. */
PyObject *array_of(PyObject *buffer, PyObject *traced)
{
    PyObject *aval = PyObject_GetAttr(buffer, str_aval), *x = NULL;
    PyObject *avals = aval == NULL ? NULL : PyTuple_Pack(1, aval);
    PyObject *node = avals == NULL ? NULL : make_leaf(buffer, avals, traced);
    PyObject *ref = node == NULL ? NULL : make_ref(node, zero);
    if (ref != NULL)
        x = handle(ref, traced, 0);
    Py_XDECREF(aval);
    Py_XDECREF(avals);
    Py_XDECREF(node);
    Py_XDECREF(ref);
    return x;
}

PyObject *evaluated(PyObject *module, PyObject *buffers)
{
    PyObject *found = NULL, *traced = PyObject_GetAttr(state, str_traced);
    PyObject *given = traced == NULL ? NULL : PySequence_List(buffers);
    if (given != NULL)
        found = PyList_New(PyList_GET_SIZE(given));
    for (Py_ssize_t i = 0; found != NULL && i < PyList_GET_SIZE(given); i++) {
        PyObject *x = array_of(PyList_GET_ITEM(given, i), traced);
        if (x == NULL)
            Py_CLEAR(found);
        else
            PyList_SET_ITEM(found, i, x);
    }
    Py_XDECREF(given);
    Py_XDECREF(traced);
    return found;
}

PyObject *call(PyObject *module, PyObject *const *given, Py_ssize_t n_given)
{
    if (n_given != 3 || !Py_IS_TYPE(given[0], &MemoryType) || !PyTuple_CheckExact(given[1]) ||
        !PyDict_CheckExact(given[2])) {
        PyErr_SetString(PyExc_TypeError, "call(memory, args, kwargs)");
        return NULL;
    }
    Memory *memory = (Memory *)given[0];
    PyObject *args = given[1], *kwargs = given[2], *result = NULL, *tuple = NULL, *traced = NULL, *recipe, *name, *x;
    PyObject *check = PyDict_GetItemWithError(settings, str_check), *names = NULL, *seen = NULL;
    Key key;
    key.n_parts = key.n_inputs = key.n_owned = 0;
    if (check == NULL && PyErr_Occurred())
        return NULL;
    PyObject *compiling = PyObject_GetAttr(state, str_compiling);
    if (compiling == NULL)
        return NULL;
    int inside = compiling != zero && PyObject_IsTrue(compiling);
    Py_DECREF(compiling);
    if (!inside && PyList_GET_SIZE(shadows)) { /* another thread traces a function with state */
        if ((seen = PyObject_CallFunctionObjArgs(as_seen, args, kwargs, NULL)) == NULL)
            return NULL;
        args = PyTuple_GET_ITEM(seen, 0);
        kwargs = PyTuple_GET_ITEM(seen, 1);
    }
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
    PyObject *recipes = inside ? memory->inside : memory->outside;
    if ((tuple = PyTuple_New(key.n_parts)) == NULL)
        goto done;
    for (Py_ssize_t i = 0; i < key.n_parts; i++) {
        Py_INCREF(key.parts[i]);
        PyTuple_SET_ITEM(tuple, i, key.parts[i]);
    }
    recipe = PyDict_GetItemWithError(recipes, tuple);
    Py_XINCREF(recipe);
    if (recipe == NULL && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_TypeError)) { /* sizes are symbols */
        PyErr_Clear();
        recipe = Py_NewRef(Py_None);
    }
    if (recipe == NULL) {
        if (PyErr_Occurred())
            goto done;
        recipe = find_recipe(memory->families, tuple, inside);
        if (recipe != NULL && PyDict_GET_SIZE(recipes) >= MOST_RECIPES)
            PyDict_Clear(recipes);
        if (recipe != NULL ? PyDict_SetItem(recipes, tuple, recipe) < 0 : PyErr_Occurred() != NULL) {
            Py_XDECREF(recipe);
            goto done;
        }
        if (recipe == NULL)
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
    Py_XDECREF(seen);
    key_free(&key);
    return result;
}
