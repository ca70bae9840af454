/** The cases of grpc-go for interoperability: its client speaks to its server by way of the sidecar. */

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { freePort } from '../../support/free-port.ts';
import { CASES, casesOfHelp, clientCommand, NOT_RUN, startInteropServer } from './grpc-interop.ts';
import { identityFor, type Spoken, startSidecar } from './surroundings.ts';

const BOUND_MS = 100_000;

describe.each<Spoken>(['h2c', 'h2'])('a server that speaks %s', (spoken) => {
  it.each(CASES)('%s', async (testCase) => {
    const identity = await identityFor(spoken);
    const serverPort = await freePort();
    await startInteropServer(serverPort, identity);
    const { address } = await startSidecar(spoken, serverPort, identity);
    const { hostname: host, port } = new URL(`http://${address}`);
    const [client, ...args] = clientCommand(testCase, { host, port: Number(port), tls: false });
    await promisify(execFile)(client, args, { timeout: BOUND_MS });
  });
});

it('every case that the client has is run, or listed with the reason', async () => {
  const known = new Set<string>([...CASES, ...NOT_RUN.keys()]);
  const cases = await casesOfHelp();
  expect(cases.length).toBeGreaterThan(20);
  expect(cases.filter((name) => !known.has(name))).toEqual([]);
});
