/** A review of the size that real ones have: managed fields, owner, probes, mounts and environment of two containers. */
export function reviewBody(): Buffer {
  const container = (name: string): object => ({
    name,
    image: `registry.example.com/${name}:1`,
    env: Array.from({ length: 12 }, (_, index) => ({
      name: `SETTING_${index}`,
      value: `value ${index} of ${name}`,
    })),
    ports: [{ containerPort: 8080, protocol: 'TCP' }],
    resources: { requests: { cpu: '100m', memory: '128Mi' }, limits: { memory: '256Mi' } },
    livenessProbe: {
      httpGet: { path: '/livez', port: 8080, scheme: 'HTTP' },
      periodSeconds: 10,
      failureThreshold: 3,
    },
    readinessProbe: {
      httpGet: { path: '/readyz', port: 8080, scheme: 'HTTP' },
      periodSeconds: 10,
      failureThreshold: 3,
    },
    volumeMounts: [
      {
        name: 'kube-api-access',
        mountPath: '/var/run/secrets/kubernetes.io/serviceaccount',
        readOnly: true,
      },
    ],
    terminationMessagePath: '/dev/termination-log',
    terminationMessagePolicy: 'File',
    imagePullPolicy: 'IfNotPresent',
  });
  const pod = {
    kind: 'Pod',
    apiVersion: 'v1',
    metadata: {
      generateName: 'shop-5d8f7c9b6d-',
      creationTimestamp: null,
      labels: { 'app.kubernetes.io/name': 'shop', 'pod-template-hash': '5d8f7c9b6d' },
      annotations: {
        'token-sidecar.dev/inject': 'true',
        'token-sidecar.dev/secret': 'shop-oauth',
        'token-sidecar.dev/auth-url': 'https://sso.example.com',
        'token-sidecar.dev/upstream': 'https://api.example.com',
      },
      ownerReferences: [
        {
          apiVersion: 'apps/v1',
          kind: 'ReplicaSet',
          name: 'shop-5d8f7c9b6d',
          uid: '5e8c3a9e-6f0b-4d31-8d36-7f7a4b7b1b0e',
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
      managedFields: Array.from({ length: 40 }, (_, index) => ({
        manager: 'kube-controller-manager',
        path: `f:${index}`,
      })),
    },
    spec: {
      volumes: [
        { name: 'kube-api-access', projected: { defaultMode: 420, sources: [{ serviceAccountToken: {} }] } },
      ],
      containers: [container('shop'), container('metrics')],
      restartPolicy: 'Always',
      terminationGracePeriodSeconds: 30,
      dnsPolicy: 'ClusterFirst',
      serviceAccountName: 'default',
      securityContext: {},
      schedulerName: 'default-scheduler',
    },
  };
  return Buffer.from(
    JSON.stringify({
      kind: 'AdmissionReview',
      apiVersion: 'admission.k8s.io/v1',
      request: {
        uid: '0df28fbd-5f5f-11e8-bc74-36e6bb280816',
        kind: { group: '', version: 'v1', kind: 'Pod' },
        resource: { group: '', version: 'v1', resource: 'pods' },
        namespace: 'default',
        operation: 'CREATE',
        userInfo: {
          username: 'system:serviceaccount:kube-system:replicaset-controller',
          groups: ['system:authenticated'],
        },
        object: pod,
        oldObject: null,
        dryRun: false,
      },
    }),
  );
}
