/**
 * `node:http` without an import statement. Linking an ES module reads every export of the modules it imports, and some
 * of node:http's exports (WebSocket, CloseEvent, …) load the whole of Node's fetch when read: 7 MB and 40 ms in every
 * pod, for nothing that we use.
 */
export const http = process.getBuiltinModule('node:http');
