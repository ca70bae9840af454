/**
 * `node:https`, got without an import statement for the reason in node-http.ts. Today it has no export that loads fetch
 * and an import statement would cost the same; this way no export to come can make every pod pay for one.
 */
export const https = process.getBuiltinModule('node:https');
