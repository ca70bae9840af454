/** The suites by which gRPC's libraries show that they work together, by way of the sidecar. */

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { freePort } from '../../support/free-port.ts';
import {
  GO_CLIENT,
  type InteropClient,
  JAVA_CLIENT,
  startGoServer,
  startJavaServer,
} from './grpc-interop.ts';
import { identityFor, type Spoken, startSidecar } from './surroundings.ts';

const BOUND_MS = 100_000;

/** @throws {Error} with what the client printed, when the case fails. */
async function run(client: InteropClient, testCase: string, address: string): Promise<void> {
  const { hostname: host, port } = new URL(`http://${address}`);
  const [command, ...args] = client.command(testCase, { host, port: Number(port), tls: false });
  await promisify(execFile)(command, args, { timeout: BOUND_MS });
}

describe.each<Spoken>(['h2c', 'h2'])("grpc-go's client and its server, which speaks %s", (spoken) => {
  it.each(GO_CLIENT.cases)('%s', async (testCase) => {
    const identity = await identityFor(spoken);
    const port = await freePort();
    await startGoServer(port, identity);
    const { address } = await startSidecar(spoken, port, identity);
    await run(GO_CLIENT, testCase, address);
  });
});

/** A server of Java takes seconds to start: one for all cases. */
describe("grpc-java's server", () => {
  it.each([GO_CLIENT, JAVA_CLIENT])(
    'every case of the client of $library passes',
    { timeout: 240_000 },
    async (client) => {
      const port = await freePort();
      await startJavaServer(port);
      const { address } = await startSidecar('h2c', port, undefined);
      const failed: string[] = [];
      for (const testCase of client.cases) {
        await run(client, testCase, address).catch((error: Error) =>
          failed.push(`${testCase}: ${error.message}`),
        );
      }
      expect(failed).toEqual([]);
    },
  );
});

it.each([GO_CLIENT, JAVA_CLIENT])(
  'every case that the client of $library has is run, or listed with the reason',
  async ({ cases, notRun, casesOfHelp }) => {
    const known = new Set([...cases, ...notRun.keys()]);
    const helped = await casesOfHelp();
    expect(helped.length).toBeGreaterThan(20);
    expect(helped.filter((name) => !known.has(name))).toEqual([]);
  },
);
