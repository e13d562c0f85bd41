/* What is used of the interpreter. The library serves programs without one, and any from 3.9 on: it
 * neither includes Python's header nor is it linked with it. All of it is part of the stable ABI,
 * and weak: null where there is no interpreter, or one that keeps its functions to itself. */
#ifndef HEADRACE_PROBES_PYTHON_PYTHON_API_H_
#define HEADRACE_PROBES_PYTHON_PYTHON_API_H_

#include <stddef.h>
#include <stdint.h>

#define OF_PYTHON extern __attribute__((weak, visibility("default")))

typedef struct PyObject_ PyObject;
typedef ptrdiff_t Py_ssize_t;
typedef PyObject* (*PyCFunction)(PyObject* self, PyObject* const* arguments, Py_ssize_t count);
typedef struct {
  const char* name;
  PyCFunction function;
  int flags;
  const char* documentation;
} PyMethodDef;
enum { METH_KEYWORDS = 0x2, METH_NOARGS = 0x4, METH_FASTCALL = 0x80 };

OF_PYTHON PyObject* PyCFunction_NewEx(PyMethodDef* method, PyObject* self, PyObject* module);
OF_PYTHON PyObject* PyDescr_NewMethod(PyObject* type, PyMethodDef* method);
OF_PYTHON PyObject* PyObject_GetAttr(PyObject* object, PyObject* name);
OF_PYTHON PyObject* PyObject_GetItem(PyObject* object, PyObject* key);
OF_PYTHON PyObject* PyObject_GetIter(PyObject* object);
OF_PYTHON PyObject* PyObject_Type(PyObject* object);
OF_PYTHON PyObject* PyObject_CallFunctionObjArgs(PyObject* callable, ...);
OF_PYTHON PyObject* PyObject_CallMethodObjArgs(PyObject* object, PyObject* name, ...);
OF_PYTHON PyObject* PyObject_Call(PyObject* callable, PyObject* arguments, PyObject* named);
OF_PYTHON Py_ssize_t PyObject_Size(PyObject* object);
OF_PYTHON int PyObject_IsTrue(PyObject* object);
OF_PYTHON PyObject* PyIter_Next(PyObject* iterator);
OF_PYTHON PyObject* PyList_New(Py_ssize_t size);
OF_PYTHON int PyList_Append(PyObject* list, PyObject* item);
OF_PYTHON PyObject* PyTuple_New(Py_ssize_t size);
OF_PYTHON PyObject* PyTuple_GetItem(PyObject* tuple, Py_ssize_t index);           /* borrowed */
OF_PYTHON int PyTuple_SetItem(PyObject* tuple, Py_ssize_t index, PyObject* item); /* steals */
OF_PYTHON PyObject* PySequence_GetItem(PyObject* sequence, Py_ssize_t index);
OF_PYTHON int PySequence_Contains(PyObject* sequence, PyObject* value);
OF_PYTHON PyObject* PyDict_New(void);
OF_PYTHON int PyDict_SetItem(PyObject* dict, PyObject* key, PyObject* value);
OF_PYTHON int PyDict_SetItemString(PyObject* dict, const char* key, PyObject* value);
OF_PYTHON PyObject* PyErr_Occurred(void);
OF_PYTHON void PyErr_SetString(PyObject* type, const char* text);
OF_PYTHON void PyErr_Clear(void);
OF_PYTHON int PyErr_ExceptionMatches(PyObject* type);
OF_PYTHON void PyErr_Fetch(PyObject** type, PyObject** value, PyObject** traceback);
OF_PYTHON void PyErr_Restore(PyObject* type, PyObject* value, PyObject* traceback);
OF_PYTHON PyObject* PyExc_TypeError;
OF_PYTHON PyObject* PyExc_Exception;
OF_PYTHON long PyLong_AsLong(PyObject* number);
OF_PYTHON void* PyLong_AsVoidPtr(PyObject* number);
OF_PYTHON PyObject* PyLong_FromLongLong(long long number);
OF_PYTHON PyObject* PyBool_FromLong(long value);
OF_PYTHON PyObject* PyUnicode_InternFromString(const char* text);
OF_PYTHON int PyUnicode_CompareWithASCIIString(PyObject* text, const char* ascii);
OF_PYTHON void Py_IncRef(PyObject* object);
OF_PYTHON void Py_DecRef(PyObject* object); /* null does nothing */

/* The types themselves; only their addresses are used. */
OF_PYTHON char PyList_Type, PyTuple_Type, PyLong_Type, PyFloat_Type, PyBool_Type, PyUnicode_Type,
    PyBytes_Type, PyByteArray_Type;

/* ---- What the functions of the module share (python_calls.c) ---- */

int hrx_is_count(Py_ssize_t count, Py_ssize_t wanted);
/* A number that is passed as a C int. 0: an exception is set. */
int hrx_number_of(PyObject* object, uint32_t* number);
/* Adds a function of the module to a dict: 0, or 1 with an exception. */
int hrx_add_call(PyObject* into, PyMethodDef* call);

#endif /* HEADRACE_PROBES_PYTHON_PYTHON_API_H_ */
