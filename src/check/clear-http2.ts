/** Whether a port in clear text speaks HTTP/2 to a client that knows beforehand (RFC 9113 §3.3), as `protocol: h2c` has it. */

import { formatAddress } from '../config/values.ts';
import { openStream } from './connection.ts';
import type { Destination } from './destination.ts';
import { type Examination, inTime, wordsFor } from './examination.ts';
import type { About, Finding } from './finding.ts';
import type { StepName } from './steps.ts';

/** A server of HTTP/2 says its SETTINGS first, and waits for nothing but the preface (RFC 9113 §3.4). */
const GREETING_MS = 2000;

/** What is wrong; undefined where HTTP/2 is spoken. */
export async function examineClearHttp2(
  to: Destination,
  step: StepName,
  of: About,
  examination: Examination,
): Promise<Finding | undefined> {
  const where = `http://${formatAddress(to)}`;
  try {
    if (await speaksHttp2(to, examination)) return undefined;
    return of.failure(
      step,
      'configuration',
      `${where} does not speak HTTP/2, and the route says protocol: h2c`,
      'name the port on which it does: gRPC needs one; for an upstream of HTTP/1.1 leave protocol out',
    );
  } catch (error) {
    return of.warning(
      step,
      `${where} says nothing to a greeting of HTTP/2 (${wordsFor(error)}), and the route says protocol: h2c`,
      'make sure that the port speaks HTTP/2 without TLS, and without an upgrade from HTTP/1.1',
    );
  }
}

/** @throws where there is no answer in time. */
async function speaksHttp2(to: Destination, examination: Examination): Promise<boolean> {
  const http2 = process.getBuiltinModule('node:http2');
  const stream = await openStream(to, undefined, examination);
  const answered = Promise.withResolvers<boolean>();
  const session = http2.connect(`http://${formatAddress(to)}`, { createConnection: () => stream });
  session.once('remoteSettings', () => answered.resolve(true));
  session.on('error', () => answered.resolve(false));
  session.on('close', () => answered.resolve(false));
  try {
    return await inTime(answered.promise, examination, Math.min(GREETING_MS, to.withinMs));
  } finally {
    session.destroy();
    stream.destroy();
  }
}
