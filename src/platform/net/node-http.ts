/**
 * `node:http` without an import statement: linking would read all its exports, and WebSocket, CloseEvent and others
 * load Node's fetch, at 7 MB and 40 ms.
 */
export const http = process.getBuiltinModule('node:http');
