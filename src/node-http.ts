/**
 * `node:http`, got without an import statement. Linking an ES module reads every export of the modules it imports,
 * and node:http has exports (WebSocket, CloseEvent, …) that load the whole of Node's fetch when they are read: 7 MB
 * and 40 ms in every pod, for nothing that we use.
 */
export const http = process.getBuiltinModule('node:http');
