/** Calls C functions through Node's foreign-function interface. */

import type { FunctionDefinitions, WrappedFunctionsFromDefinitions } from 'node:ffi';
import { getSystemErrorName } from 'node:util';
import { SidecarError } from '../../platform/errors.ts';

/** Functions live only as long as their library object. */
const KEPT: object[] = [];

/**
 * Found in the running program, whatever the library's file is called.
 * @param user the feature that needs them.
 * @throws {SidecarError} `configuration` if Node lacks this interface, or has it switched off.
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
 * Of the last C call, such as `EAGAIN`.
 * @throws {SidecarError} `configuration` if C functions cannot be called.
 */
export function lastErrorReader(user: string): () => string {
  const { __errno_location } = cFunctions({ __errno_location: { arguments: [], return: 'pointer' } }, user);
  // Constant for the life of the thread.
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
