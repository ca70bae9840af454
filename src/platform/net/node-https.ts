/** No import statement, so that no future export can load fetch when it is linked (node-http.ts). */
export const https = process.getBuiltinModule('node:https');
