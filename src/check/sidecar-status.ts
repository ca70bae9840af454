/** What a running sidecar's admin listener reports. */

import * as v from 'valibot';
import type { ListenAddress } from '../platform/net/address.ts';
import { http } from '../platform/net/node-http.ts';
import { type Examination, inTime, wordsFor } from './examination.ts';

/** A status with hundreds of routes is smaller. Bytes. */
const MAX_STATUS_BYTES = 4 * 1024 * 1024;
const WITHIN_MS = 5000;

const credentialSchema = v.object({
  name: v.string(),
  /** `exchanged` if requests' own tokens are exchanged, and none is held. */
  tokens: v.optional(v.string()),
  expiresInSeconds: v.optional(v.number()),
  lastFailure: v.optional(v.object({ result: v.string() })),
  mountedCredentials: v.optional(v.object({ detail: v.optional(v.string()) })),
});

const routeSchema = v.object({
  name: v.string(),
  requests: v.object({ total: v.number(), inFlight: v.number(), errors: v.number() }),
});

const problemSchema = v.object({
  level: v.picklist(['warning', 'failing']),
  about: v.optional(v.object({ kind: v.string(), name: v.string() })),
  what: v.string(),
  since: v.optional(v.string()),
  why: v.optional(v.string()),
  next: v.string(),
  nextAt: v.optional(v.string()),
  runbook: v.optional(v.pipe(v.string(), v.regex(/^\w{1,64}$/))),
});

const configurationSchema = v.object({
  file: v.string(),
  generation: v.number(),
  state: v.string(),
  reason: v.optional(v.string()),
  errors: v.optional(v.string()),
});

/** The part of `/api/status` that is used here; there may be more. */
const statusSchema = v.object({
  version: v.string(),
  uptimeSeconds: v.number(),
  draining: v.boolean(),
  verdict: v.object({ problems: v.array(problemSchema) }),
  configuration: v.optional(configurationSchema),
  credentials: v.array(credentialSchema),
  routes: v.array(routeSchema),
});

export type SidecarStatus = v.InferOutput<typeof statusSchema>;
/** What fails, since when, and what happens next: the parts of a sentence. */
export type SidecarProblem = v.InferOutput<typeof problemSchema>;
export async function askStatus(
  admin: ListenAddress,
  examination: Pick<Examination, 'clock' | 'signal'>,
): Promise<{ readonly status: SidecarStatus } | { readonly wrong: string }> {
  try {
    const text = await getText(admin, examination);
    const parsed = v.safeParse(statusSchema, JSON.parse(text));
    return parsed.success ? { status: parsed.output } : { wrong: 'what answers there is no sidecar' };
  } catch (error) {
    if (error instanceof SyntaxError) return { wrong: 'what answers there is no sidecar' };
    return { wrong: wordsFor(error) };
  }
}

function getText(
  { host, port }: ListenAddress,
  examination: Pick<Examination, 'clock' | 'signal'>,
): Promise<string> {
  const answered = Promise.withResolvers<string>();
  const request = http.get({ host, port, path: '/api/status', agent: false }, (response) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    response.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > MAX_STATUS_BYTES)
        request.destroy(new Error(`it answers more than ${MAX_STATUS_BYTES} bytes`));
      else chunks.push(chunk);
    });
    response.on('error', answered.reject);
    response.once('end', () => {
      if (response.statusCode === 200) answered.resolve(Buffer.concat(chunks).toString('utf8'));
      else answered.reject(new Error(`/api/status answered ${response.statusCode}`));
    });
  });
  request.on('error', answered.reject);
  return inTime(answered.promise, examination, WITHIN_MS, () => request.destroy());
}
