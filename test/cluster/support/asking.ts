/** Requests over TLS from the node or a pod, where Services can be reached, with whatever proof of a caller. */

import { createPrivateKey, sign } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { inPki } from '../node/certificates.ts';
import { IN_NAMESPACE } from '../node/daemon.ts';
import { get, kubectl } from '../node/kubectl.ts';
import { run } from '../node/run.ts';
import { networkOf } from './reaching.ts';
import type { Pod } from './workload.ts';

export interface Asked {
  /** `NAMESPACE/NAME` of a Service. */
  readonly service: string;
  readonly port: number;
  readonly path: string;
  /** CAs of the Service, in PEM. */
  readonly ca: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** A form makes it a POST. */
  readonly form?: Readonly<Record<string, string>>;
  readonly cert?: string;
  readonly key?: string;
  /** The pod whose network it is asked from; otherwise the node's. */
  readonly from?: Pod;
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Run by Node in the network of the node or a pod, which is not this process's: what to ask comes by standard input. */
const PROGRAM = `
import { text } from 'node:stream/consumers';
import { request } from 'node:https';
const { body, ...options } = JSON.parse(await text(process.stdin));
const sent = request({ ...options, agent: false }, async (answer) => {
  const { statusCode: status, headers } = answer;
  process.stdout.write(JSON.stringify({ status, headers, body: await text(answer) }));
});
sent.setTimeout(20_000, () => sent.destroy(new Error('no answer within 20 s')));
sent.end(body);
`;

/** @throws when there is no answer. */
export async function ask({
  service,
  port,
  path,
  ca,
  headers = {},
  form,
  cert,
  key,
  from,
}: Asked): Promise<Answer> {
  const [namespace = '', name = ''] = service.split('/');
  const { spec } = await get<{ spec: { clusterIP: string } }>('service', name, '-n', namespace);
  const host = `${name}.${namespace}.svc`;
  const body = form === undefined ? undefined : new URLSearchParams(form).toString();
  const type = body === undefined ? {} : { 'content-type': 'application/x-www-form-urlencoded' };
  const input = JSON.stringify({
    ...{ host: spec.clusterIP, port, path, servername: host, ca, cert, key, body },
    method: body === undefined ? 'GET' : 'POST',
    headers: { host: `${host}:${port}`, ...type, ...headers },
  });
  const [enter, ...entered] = from === undefined ? IN_NAMESPACE : await networkOf(from);
  const program = [process.execPath, '--input-type=module', '--eval', PROGRAM];
  return JSON.parse(await run(enter, [...entered, ...program], { input })) as Answer;
}

export interface TokenOf {
  readonly namespace: string;
  readonly account?: string;
  readonly audience: string;
  /** The pod that it is bound to. */
  readonly pod?: { readonly name: string; readonly uid: string };
}

/** A token as the kubelet gets it for a pod. */
export async function serviceAccountToken({
  namespace,
  account = 'default',
  audience,
  pod,
}: TokenOf): Promise<string> {
  const bound =
    pod === undefined
      ? []
      : ['--bound-object-kind=Pod', `--bound-object-name=${pod.name}`, `--bound-object-uid=${pod.uid}`];
  const made = await kubectl(
    ...(['-n', namespace, 'create', 'token', account, `--audience=${audience}`] as const),
    ...['--duration=10m', ...bound],
  );
  return made.trim();
}

/** The same token as the cluster would have signed it an hour ago. */
export function anHourOld(token: string): string {
  const [head = '', body = ''] = token.split('.');
  const claims = JSON.parse(Buffer.from(body, 'base64url').toString('utf8')) as Record<string, number>;
  const earlier = Object.fromEntries(['iat', 'nbf', 'exp'].map((name) => [name, (claims[name] ?? 0) - 3600]));
  const text = `${head}.${Buffer.from(JSON.stringify({ ...claims, ...earlier })).toString('base64url')}`;
  const key = createPrivateKey(readFileSync(inPki('accounts.key'), 'utf8'));
  const signature = sign('sha256', Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' });
  return `${text}.${signature.toString('base64url')}`;
}
