/**
 * `node:https` without an import statement, for the reason in node-http.ts. Today none of its exports loads fetch, and
 * an import statement would cost the same; this way no future export can make every pod pay.
 */
export const https = process.getBuiltinModule('node:https');
