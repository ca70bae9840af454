/**
 * A stand-in for a service mesh's injector and for what it adds: `mesh webhook` puts an init container and a native sidecar
 * before all others, as Istio does; in pods labelled `mesh: classic` the sidecar is a container like the app. Of pods labelled
 * `mesh: old` it drops what API types of before Kubernetes 1.28 do not know. `mesh init` and `mesh proxy` are those two.
 */

import { readFileSync } from 'node:fs';
import { createServer as createHttpServer, type IncomingMessage } from 'node:http';
import { createServer } from 'node:https';

interface Pod {
  readonly metadata: { readonly labels?: Readonly<Record<string, string>> };
  readonly spec: {
    readonly containers: readonly { readonly image: string }[];
    readonly initContainers?: readonly { readonly name: string; readonly restartPolicy?: string }[];
  };
}

interface Review {
  readonly request: { readonly uid: string; readonly object: Pod };
}

const SECURITY = {
  runAsUser: 1337,
  runAsGroup: 1337,
  runAsNonRoot: true,
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
  seccompProfile: { type: 'RuntimeDefault' },
};

function patchOf({ metadata, spec }: Pod): readonly object[] {
  const before = spec.initContainers ?? [];
  if (before.some(({ name }) => name === 'mesh-init')) return [];
  if (metadata.labels?.['mesh'] === 'old') {
    const paths = before.flatMap(({ restartPolicy }, index) =>
      restartPolicy === undefined ? [] : [`/spec/initContainers/${index}/restartPolicy`],
    );
    return paths.map((path) => ({ op: 'remove', path }));
  }
  const isClassic = metadata.labels?.['mesh'] === 'classic';
  const part = (name: 'init' | 'proxy'): object => ({
    name: `mesh-${name}`,
    image: spec.containers[0]?.image,
    command: ['node', '/programs/mesh.js', name],
    securityContext: SECURITY,
  });
  const native = {
    ...part('proxy'),
    restartPolicy: 'Always',
    startupProbe: {
      httpGet: { path: '/healthz/ready', port: 15_021 },
      periodSeconds: 1,
      failureThreshold: 60,
    },
  };
  const first = isClassic ? [part('init')] : [part('init'), native];
  return [
    { op: 'add', path: '/spec/initContainers', value: [...first, ...before] },
    ...(isClassic ? [{ op: 'add', path: '/spec/containers/-', value: part('proxy') }] : []),
  ];
}

async function bodyOf(asked: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of asked) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

switch (process.argv[2]) {
  case 'webhook':
    createServer(
      { cert: readFileSync('/tls/tls.crt'), key: readFileSync('/tls/tls.key') },
      async (asked, answer) => {
        const { request } = JSON.parse(await bodyOf(asked)) as Review;
        const patch = Buffer.from(JSON.stringify(patchOf(request.object))).toString('base64');
        const response = { uid: request.uid, allowed: true, patchType: 'JSONPatch', patch };
        answer.setHeader('Content-Type', 'application/json');
        answer.end(JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response }));
      },
    ).listen(8443);
    break;
  case 'init':
    // What Istio's does takes NET_ADMIN; that it ends before anything else begins is what counts here.
    process.stdout.write('done\n');
    break;
  case 'proxy':
    createHttpServer((_asked, answer) => answer.end('ready')).listen(15_021);
    break;
  default:
    throw new Error('say what: webhook, init or proxy');
}
process.once('SIGTERM', () => process.exit(0));
