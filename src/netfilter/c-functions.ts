/** What the system offers to programs in C alone, by Node's foreign-function interface. */

import type { FunctionDefinitions, WrappedFunctionsFromDefinitions } from 'node:ffi';
import { getSystemErrorName } from 'node:util';
import { SidecarError } from '../errors.ts';

/** Functions are there for as long as what they were found in. */
const KEPT: object[] = [];

/**
 * The C library's functions by these signatures. The program itself has them all, whatever the library's file is called.
 * @param user what needs them, for the error.
 * @throws {SidecarError} `configuration` where Node has no such interface, or has it switched off.
 */
export function cFunctions<const Signatures extends FunctionDefinitions>(
  signatures: Signatures,
  user: string,
): WrappedFunctionsFromDefinitions<Signatures> {
  const { lib, functions } = foreignFunctions(user).dlopen(null, signatures);
  KEPT.push(lib);
  return functions;
}

/**
 * Reads the name of the error of the call into C that has just failed, such as `EAGAIN`.
 * @throws {SidecarError} as `cFunctions`.
 */
export function lastErrorReader(user: string): () => string {
  const { __errno_location } = cFunctions({ __errno_location: { arguments: [], return: 'pointer' } }, user);
  // The same place for as long as the thread lives.
  const place = __errno_location();
  return () => getSystemErrorName(-foreignFunctions(user).getInt32(place));
}

function foreignFunctions(user: string): typeof import('node:ffi') {
  const ffi = process.getBuiltinModule('node:ffi') as typeof import('node:ffi') | undefined;
  if (ffi === undefined) {
    throw new SidecarError(
      'configuration',
      `${user} needs Node's foreign-function interface (node:ffi), which Node ${process.versions.node} does not offer here: expected Node 26 or later without --no-experimental-ffi, which NODE_OPTIONS of the image has`,
    );
  }
  return ffi;
}
