/** An import statement would read all exports, some of which load Node's fetch: 7 MB and 40 ms. */
export const http = process.getBuiltinModule('node:http');
