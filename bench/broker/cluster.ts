/** As much of an API server as a broker needs: keys, reviews that confirm, one profile and one Secret; and tokens of pods. */

import { generateKeyPairSync, randomUUID, sign } from 'node:crypto';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { CLIENT_ID, CLIENT_SECRET } from '../token-endpoint.ts';

const ISSUER = 'https://kubernetes.default.svc.cluster.local';
const AUDIENCE = 'token-sidecar-broker';
const NAMESPACE = 'token-sidecar';
const PODS_NAMESPACE = 'shop';

export interface BenchCluster {
  /** TokenReviews so far. */
  readonly reviews: number;
  /** Tokens as the kubelet projects them, each of a pod of its own. */
  tokens(pods: number): readonly string[];
  writeKubeconfig(path: string): Promise<void>;
  close(): Promise<void>;
}

/** @param tokenUrl where the profile's credential is asked for. */
export async function startCluster(tokenUrl: string): Promise<BenchCluster> {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const kid = randomUUID();
  let reviews = 0;

  function claimsOf(pod: string): object {
    const nowSeconds = Math.floor(Date.now() / 1000);
    return {
      aud: [AUDIENCE],
      exp: nowSeconds + 3600,
      iat: nowSeconds,
      nbf: nowSeconds,
      iss: ISSUER,
      jti: randomUUID(),
      'kubernetes.io': {
        namespace: PODS_NAMESPACE,
        node: { name: 'node-1', uid: randomUUID() },
        pod: { name: pod, uid: randomUUID() },
        serviceaccount: { name: 'web', uid: 'uid-of-web' },
      },
      sub: `system:serviceaccount:${PODS_NAMESPACE}:web`,
    };
  }

  /** As RS256, which clusters sign with unless they are told otherwise. */
  function tokenOf(pod: string): string {
    const text = [{ alg: 'RS256', kid }, claimsOf(pod)]
      .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
      .join('.');
    return `${text}.${sign('sha256', Buffer.from(text), privateKey).toString('base64url')}`;
  }

  function review(token: string): object {
    reviews += 1;
    const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as {
      readonly sub: string;
      readonly aud: readonly string[];
      readonly 'kubernetes.io': { readonly pod: { readonly uid: string } };
    };
    return {
      status: {
        authenticated: true,
        audiences: claims.aud,
        user: {
          username: claims.sub,
          extra: { 'authentication.kubernetes.io/pod-uid': [claims['kubernetes.io'].pod.uid] },
        },
      },
    };
  }

  const objects = new Map<string, readonly object[]>([
    [
      '/apis/token-sidecar.dev/v1alpha1/clustertokenprofiles',
      [
        {
          metadata: { name: 'payments', uid: 'payments', generation: 1, resourceVersion: '1' },
          spec: {
            namespaces: { names: [PODS_NAMESPACE] },
            credentials: [
              {
                via: 'broker',
                tokenUrl,
                clientAuth: 'client_secret_post',
                secret: { name: 'oauth' },
              },
            ],
            routes: [{ upstream: 'https://api.example.com' }],
          },
        },
      ],
    ],
    ['/api/v1/namespaces', [{ metadata: { name: PODS_NAMESPACE, resourceVersion: '1' } }]],
    [
      `/api/v1/namespaces/${NAMESPACE}/secrets`,
      [
        {
          metadata: { name: 'oauth', resourceVersion: '1' },
          data: {
            client_id: Buffer.from(CLIENT_ID).toString('base64'),
            client_secret: Buffer.from(CLIENT_SECRET).toString('base64'),
          },
        },
      ],
    ],
  ]);

  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '', 'http://api');
    const say = (status: number, value: object): void => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
    };
    const items = objects.get(url.pathname);
    if (url.pathname === '/.well-known/openid-configuration') {
      say(200, { issuer: ISSUER, jwks_uri: `${ISSUER}/openid/v1/jwks` });
    } else if (url.pathname === '/openid/v1/jwks') {
      say(200, { keys: [{ ...publicKey.export({ format: 'jwk' }), kid, alg: 'RS256', use: 'sig' }] });
    } else if (url.pathname === '/apis/authentication.k8s.io/v1/tokenreviews') {
      bodyOf(request).then(
        (body) => say(201, review((JSON.parse(body) as { spec: { token: string } }).spec.token)),
        () => response.destroy(),
      );
    } else if (items === undefined) {
      say(404, { kind: 'Status', code: 404 });
    } else if (url.searchParams.get('watch') === 'true') {
      // Nothing ever changes.
      response.writeHead(200, { 'content-type': 'application/json' }).flushHeaders();
    } else {
      say(200, { metadata: { resourceVersion: '1' }, items });
    }
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;

  return {
    get reviews() {
      return reviews;
    },
    tokens: (pods) => Array.from({ length: pods }, (_, index) => tokenOf(`web-${index}`)),
    writeKubeconfig: (path) =>
      writeFile(
        path,
        JSON.stringify({
          clusters: [
            {
              name: 'bench',
              // Without TLS, of which there is nothing to measure: the client asks for this to be said.
              cluster: { server: `http://127.0.0.1:${port}`, 'insecure-skip-tls-verify': true },
            },
          ],
          users: [{ name: 'bench', user: { token: 'bench' } }],
          contexts: [{ name: 'bench', context: { cluster: 'bench', user: 'bench', namespace: NAMESPACE } }],
          'current-context': 'bench',
        }),
      ),
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}
