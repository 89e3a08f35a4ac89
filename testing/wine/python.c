/* The interpreter, for which the wheel that brings its library has no program. */
#include <wchar.h>

__declspec(dllimport) int Py_Main(int count, wchar_t **words);

int wmain(int count, wchar_t **words)
{
    return Py_Main(count, words);
}
