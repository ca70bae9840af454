/** Without an import statement, no future export can load fetch (node-http.ts). */
export const https = process.getBuiltinModule('node:https');
