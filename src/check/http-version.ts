/** Whether a port speaks HTTP/2 with prior knowledge (RFC 9113 §3.3). */

import type { Socket } from 'node:net';
import { formatAddress } from '../platform/net/address.ts';
import {
  type About,
  type CheckContext,
  type Destination,
  type Finding,
  inTime,
  wordsFor,
} from './check-context.ts';
import { openStream, remedyForNoConnection } from './connection.ts';
import type { StepName } from './steps.ts';

/** A server sends its SETTINGS once it has the preface (RFC 9113 §3.4). */
const GREETING_MS = 2000;

const NOT_HTTP2 = 'ERR_HTTP2_ERROR';

type Answer = 'HTTP/2' | 'another protocol' | { readonly gone: string };

/** Undefined if HTTP/2 is spoken. */
export async function checkClearHttp2(
  to: Destination,
  step: StepName,
  of: About,
  examination: CheckContext,
): Promise<Finding | undefined> {
  const where = `http://${formatAddress(to)}`;
  const route = 'and the route says protocol: h2c';
  let stream: Socket;
  try {
    stream = await openStream(to, undefined, examination);
  } catch (error) {
    const why = wordsFor(error);
    return of.failure(step, 'provider_unavailable', `${where}: ${why}`, remedyForNoConnection(why));
  }
  try {
    const answer = await greet(stream, where, to.withinMs, examination);
    if (answer === 'HTTP/2') return undefined;
    if (answer === 'another protocol') {
      const remedy =
        'name the port on which it does: gRPC needs one; for an upstream of HTTP/1.1 leave protocol out';
      return of.failure(step, 'configuration', `${where} does not speak HTTP/2, ${route}`, remedy);
    }
    const detail = `${where} hangs up on a greeting of HTTP/2 (${answer.gone}), ${route}`;
    return of.warning(step, detail, "look at the upstream's log, and at what stands before it");
  } catch (error) {
    const detail = `${where} says nothing to a greeting of HTTP/2 (${wordsFor(error)}), ${route}`;
    const remedy = 'make sure that the port speaks HTTP/2 without TLS, and without an upgrade from HTTP/1.1';
    return of.warning(step, detail, remedy);
  } finally {
    stream.destroy();
  }
}

/** @throws {TooLate} if no answer comes in time. */
async function greet(
  stream: Socket,
  where: string,
  withinMs: number,
  examination: CheckContext,
): Promise<Answer> {
  const http2 = process.getBuiltinModule('node:http2');
  const answered = Promise.withResolvers<Answer>();
  const session = http2.connect(where, { createConnection: () => stream });
  session.once('remoteSettings', () => answered.resolve('HTTP/2'));
  session.on('error', (error) => {
    const why = wordsFor(error);
    answered.resolve(why === NOT_HTTP2 ? 'another protocol' : { gone: why });
  });
  session.on('close', () => answered.resolve({ gone: 'without a word' }));
  try {
    return await inTime(answered.promise, examination, Math.min(GREETING_MS, withinMs));
  } finally {
    session.destroy();
  }
}
