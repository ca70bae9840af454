import { describe, expect, test } from 'vitest';
import { SYSTEM_NAMESPACES } from '../../src/injector/pod/inject.ts';
import { type Manifest, manifests, only, type Rendering, template } from './manifests.ts';

async function webhook(set: readonly string[] = []) {
  const { webhooks } = only(await manifests({ set }), 'MutatingWebhookConfiguration');
  expect(webhooks.map(({ name }: Manifest) => name)).toEqual([
    'inject.token-sidecar.dev',
    'check.token-sidecar.dev',
  ]);
  return webhooks[0];
}

test('the webhook fails open, soon, without side effects in a dry run, and is asked again', async () => {
  expect(await webhook()).toMatchObject({
    failurePolicy: 'Ignore',
    timeoutSeconds: 5,
    sideEffects: 'NoneOnDryRun',
    reinvocationPolicy: 'IfNeeded',
    admissionReviewVersions: ['v1'],
    rules: [
      {
        apiGroups: [''],
        apiVersions: ['v1'],
        operations: ['CREATE'],
        resources: ['pods'],
        scope: 'Namespaced',
      },
    ],
  });
});

test('only annotated pods reach it', async () => {
  const { matchConditions } = await webhook();

  expect(matchConditions).toEqual([
    {
      name: 'asks-for-the-sidecar',
      expression:
        "has(object.metadata.annotations) && 'token-sidecar.dev/inject' in object.metadata.annotations && object.metadata.annotations['token-sidecar.dev/inject'] != 'false' && !('kubernetes.io/config.mirror' in object.metadata.annotations)",
    },
  ]);
});

test('its own namespace and those of the system never reach it', async () => {
  const { namespaceSelector } = await webhook();

  expect(namespaceSelector.matchExpressions).toEqual([
    {
      key: 'kubernetes.io/metadata.name',
      operator: 'NotIn',
      values: ['kube-system', 'kube-public', 'kube-node-lease', 'token-sidecar'],
    },
    { key: 'token-sidecar.dev/injection', operator: 'NotIn', values: ['disabled'] },
  ]);
});

test('its own namespace and those of the system are left out even when the excluded ones are replaced', async () => {
  const set = ['injector.webhook.excludedNamespaces={monitoring}'];
  const { namespaceSelector } = await webhook(set);
  const enforcement = (await manifests({ set })).find(
    ({ kind, metadata }) =>
      kind === 'ValidatingAdmissionPolicy' && metadata.name === 'token-sidecar-token-sidecar-injector',
  );

  expect(namespaceSelector.matchExpressions[0].values).toEqual([
    'monitoring',
    ...SYSTEM_NAMESPACES,
    'token-sidecar',
  ]);
  expect(enforcement.spec.matchConstraints.namespaceSelector).toEqual(namespaceSelector);
});

test('it can be limited to namespaces that carry the label', async () => {
  const { namespaceSelector } = await webhook(['injector.webhook.namespaces=labelled']);

  expect(namespaceSelector.matchExpressions[1]).toEqual({
    key: 'token-sidecar.dev/injection',
    operator: 'In',
    values: ['enabled'],
  });
});

test('it calls the Service that the chart makes, at a port that the Service has', async () => {
  const all = await manifests();
  const { clientConfig } = only(all, 'MutatingWebhookConfiguration').webhooks[0];
  const service = only(all, 'Service');

  expect(clientConfig.service).toMatchObject({
    name: service.metadata.name,
    namespace: service.metadata.namespace,
    port: 443,
  });
  expect(service.spec.ports.map(({ port }: { port: number }) => port)).toContain(443);
});

test('cert-manager is told to write the CA, and none is rendered', async () => {
  const all = await manifests({ ci: 'cert-manager-values.yaml' });
  const configuration = only(all, 'MutatingWebhookConfiguration');
  const serving = all.find(({ kind, spec }) => kind === 'Certificate' && spec.isCA !== true);

  expect(configuration.metadata.annotations['cert-manager.io/inject-ca-from']).toBe(
    `token-sidecar/${serving.metadata.name}`,
  );
  expect(configuration.webhooks[0].clientConfig).not.toHaveProperty('caBundle');
  expect(serving.spec.dnsNames).toContain('token-sidecar-injector.token-sidecar.svc');
});

/** Without the policies that guard the CA bundle and that warn. */
function ofEnforcement(all: readonly Manifest[]): Manifest[] {
  return all.filter(({ metadata }) => !/-(ca-bundle|misplaced|not-served)$/.test(metadata.name));
}

test('enforcement denies, by a policy that needs no injector, exactly what the webhook selects', async () => {
  const all = ofEnforcement(await manifests({ ci: 'enforce-values.yaml' }));
  const policy = only(all, 'ValidatingAdmissionPolicy');
  const selected = only(all, 'MutatingWebhookConfiguration').webhooks[0];

  expect(policy.spec.failurePolicy).toBe('Fail');
  expect(policy.spec.matchConstraints.namespaceSelector).toEqual(selected.namespaceSelector);
  expect(policy.spec.matchConditions).toEqual(selected.matchConditions);
  expect(only(all, 'ValidatingAdmissionPolicyBinding').spec).toEqual({
    policyName: policy.metadata.name,
    validationActions: ['Deny'],
  });
});

describe('enforcement, where nobody says', () => {
  const enforces = async (rendering: Rendering): Promise<boolean> =>
    ofEnforcement(await manifests(rendering)).some(({ kind }) => kind === 'ValidatingAdmissionPolicyBinding');
  const POLICIES = 'admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy';

  test('is on where the cluster has policies, by its version or by what it says', async () => {
    expect(await enforces({})).toBe(true);
    expect(await enforces({ kubernetes: '1.30' })).toBe(true);
    expect(await enforces({ args: ['--api-versions', `v1/Pod,${POLICIES}`] })).toBe(true);
  });

  test('is off where it has none, or is told to be', async () => {
    expect(await enforces({ kubernetes: '1.29' })).toBe(false);
    expect(await enforces({ args: ['--api-versions', 'v1/Pod'] })).toBe(false);
    expect(await enforces({ set: ['injector.webhook.enforce=false'] })).toBe(false);
  });

  test('tells whoever made the pod where to look, and by which command, where there is one', async () => {
    const told = async (...set: string[]): Promise<string> =>
      only(ofEnforcement(await manifests({ set })), 'ValidatingAdmissionPolicy').spec.validations[0].message;
    const message = await told();
    expect(message).toContain('--namespace token-sidecar get pods');
    expect(message).toMatch(
      /next attempt, which may be 16 minutes away; kubectl rollout restart makes it at once$/,
    );
    expect(message).toContain('(helm test token-sidecar --namespace token-sidecar), and its log');
    expect(await told('injector.startupCheck.enabled=false')).toContain('component=injector), and its log');
  });
});

test('the picture of a static pod is not asked about: the kubelet owns that pod', async () => {
  const { webhooks } = only(await manifests(), 'MutatingWebhookConfiguration');
  expect(webhooks[0].matchConditions[0].expression).toContain('kubernetes.io/config.mirror');
});

/** Of a MutatingWebhook in admissionregistration.k8s.io/v1, all but the name, by which they are matched. */
const WEBHOOK_FIELDS = [
  'rules',
  'failurePolicy',
  'matchPolicy',
  'namespaceSelector',
  'objectSelector',
  'sideEffects',
  'timeoutSeconds',
  'admissionReviewVersions',
  'reinvocationPolicy',
  'matchConditions',
];

test('the account that keeps the CA bundle may change nothing else of its webhook', async () => {
  const all = await manifests({
    ci: 'self-managed-values.yaml',
    set: [
      'injector.webhook.enforce=false',
      'injector.webhook.warnings=false',
      'injector.startupCheck.enabled=false',
    ],
  });
  const { spec } = only(all, 'ValidatingAdmissionPolicy');
  const [{ expression }] = spec.validations;
  const webhooks = only(all, 'MutatingWebhookConfiguration');
  const account = only(all, 'ServiceAccount').metadata;

  expect(spec.failurePolicy).toBe('Fail');
  expect(spec.matchConditions).toEqual([
    {
      name: 'by-the-injector',
      expression: `request.userInfo.username == 'system:serviceaccount:${account.namespace}:${account.name}'`,
    },
  ]);
  expect(spec.matchConstraints.resourceRules).toEqual([
    {
      apiGroups: ['admissionregistration.k8s.io'],
      apiVersions: ['v1'],
      operations: ['UPDATE'],
      resources: ['mutatingwebhookconfigurations'],
    },
  ]);
  expect(expression).toContain(`object.metadata.name == '${webhooks.metadata.name}'`);
  for (const field of WEBHOOK_FIELDS) expect(expression).toContain(`w.${field} == o.${field}`);
  expect(expression).toContain('w.clientConfig.service == o.clientConfig.service');
  // Nothing that the chart gives the webhook is forgotten.
  const [{ name: _, clientConfig: __, ...others }] = webhooks.webhooks;
  expect(WEBHOOK_FIELDS).toEqual(expect.arrayContaining(Object.keys(others)));
  expect(only(all, 'ValidatingAdmissionPolicyBinding').spec).toEqual({
    policyName: only(all, 'ValidatingAdmissionPolicy').metadata.name,
    validationActions: ['Deny'],
  });
});

test.each([
  ['is switched off', { set: ['injector.certificates.selfManaged.policy=false'] }],
  ['does not exist yet', { kubernetes: '1.29' }],
])('there is no such policy where it %s', async (_, rendering) => {
  const all = await manifests({ ci: 'self-managed-values.yaml', ...rendering });
  const policies = all.filter(({ kind }) => kind === 'ValidatingAdmissionPolicy');
  expect(policies.map(({ metadata }) => metadata.name).filter((name) => name.endsWith('-ca-bundle'))).toEqual(
    [],
  );
});

test('without the API the injector has no side effects, no permissions, no token, and is told about native sidecars', async () => {
  const set = ['injector.kubernetesApi.enabled=false', 'injector.certificates.source=helm'];
  const all = await manifests({ set });
  const native = (variables: { name: string; value: string }[]) =>
    variables.find(({ name }) => name === 'TOKEN_SIDECAR_DEFAULT_NATIVE_SIDECAR')?.value;

  for (const kind of ['ClusterRole', 'Role', 'RoleBinding', 'Job']) {
    expect(all.map((manifest) => manifest.kind)).not.toContain(kind);
  }
  expect(JSON.stringify(all)).not.toContain('"automountServiceAccountToken":true');
  expect(JSON.stringify(all)).not.toContain('check.token-sidecar.dev');
  expect(only(all, 'MutatingWebhookConfiguration').webhooks[0].sideEffects).toBe('None');
  const { spec } = only(all, 'Deployment').spec.template;
  expect(spec.automountServiceAccountToken).toBe(false);
  expect(native(spec.containers[0].env)).toBe('true');
  const older = only(await manifests({ set, kubernetes: '1.28' }), 'Deployment').spec.template.spec;
  expect(native(older.containers[0].env)).toBe('false');
});

test('two releases in one cluster do not share a cluster-wide name', async () => {
  const elsewhere = await template({ args: ['--namespace', 'elsewhere'] });
  const names = (text: string) =>
    [...text.matchAll(/kind: (?:ClusterRole|MutatingWebhookConfiguration)\nmetadata:\n {2}name: (\S+)/g)].map(
      (match) => match[1],
    );

  const here = names((await template()).stdout);
  expect(here).toHaveLength(2);
  expect(names(elsewhere.stdout).filter((name) => here.includes(name))).toEqual([]);
});

describe('what whoever applies a workload is warned of', () => {
  const warning = (all: Manifest[], name: string): Manifest =>
    all.find(({ kind, metadata }) => kind === 'ValidatingAdmissionPolicy' && metadata.name.endsWith(name));

  test('an annotation on the workload itself, and a namespace that is not served; nothing is refused', async () => {
    const all = await manifests({ set: ['injector.webhook.excludedNamespaces={kube-system,legacy}'] });
    for (const name of ['-misplaced', '-not-served']) {
      expect(warning(all, name).spec.failurePolicy).toBe('Ignore');
      const binding = all.find(
        ({ kind, spec }) =>
          kind === 'ValidatingAdmissionPolicyBinding' && spec.policyName === warning(all, name).metadata.name,
      );
      expect(binding.spec.validationActions).toEqual(['Warn']);
    }
    expect(warning(all, '-misplaced').spec.matchConditions[0].expression).toContain(
      'token-sidecar.dev/inject',
    );
  });

  /** What the policy judges a namespace by: the labels that it has. */
  const judged = async (...set: string[]) => {
    const { matchConstraints, variables, validations } = warning(
      await manifests({ set: set.map((value) => `injector.webhook.${value}`) }),
      '-not-served',
    ).spec;
    expect(variables[1]).toEqual({
      name: 'labels',
      expression: 'has(namespaceObject.metadata.labels) ? namespaceObject.metadata.labels : {}',
    });
    const [, served] = validations[0].expression.split("['token-sidecar.dev/inject'] == 'false' || ");
    return { left: matchConstraints.namespaceSelector, served, message: validations[0].messageExpression };
  };
  const BY_NAME = (names: string) =>
    `!('kubernetes.io/metadata.name' in variables.labels && variables.labels['kubernetes.io/metadata.name'] in [${names}])`;
  const SYSTEM = '"kube-system","kube-public","kube-node-lease"';

  test('a namespace is not served if the webhook does not select it, for whatever reason', async () => {
    const { left, served, message } = await judged(
      'excludedNamespaces={legacy}',
      'namespaces=labelled',
      'namespaceExpressions[0].key=tenant',
      'namespaceExpressions[0].operator=Exists',
    );
    expect(served).toBe(
      [
        BY_NAME(`"legacy",${SYSTEM},"token-sidecar"`),
        "('token-sidecar.dev/injection' in variables.labels && variables.labels['token-sidecar.dev/injection'] in [\"enabled\"])",
        "('tenant' in variables.labels)",
      ].join(' && '),
    );
    expect(message).toContain(
      "', but only those with the label token-sidecar.dev/injection=enabled that are not excluded'",
    );
    expect(left.matchExpressions).toEqual([
      { key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: SYSTEM_NAMESPACES },
      { key: 'token-sidecar.dev/injection', operator: 'NotIn', values: ['disabled'] },
    ]);
  });

  test('where all namespaces are served, no label is asked for', async () => {
    const { served, message } = await judged();
    expect(served).toBe(
      `${BY_NAME(`${SYSTEM},"token-sidecar"`)} && ` +
        "!('token-sidecar.dev/injection' in variables.labels && variables.labels['token-sidecar.dev/injection'] in [\"disabled\"])",
    );
    expect(message).toMatch(
      /the injector in token-sidecar does not serve the namespace ' \+ request\.namespace$/,
    );
  });

  test.each([
    ['is switched off', { set: ['injector.webhook.warnings=false'] }],
    ['cannot be told', { kubernetes: '1.29' }],
  ])('nothing, where it %s', async (_, rendering) => {
    expect(warning(await manifests(rendering), '-misplaced')).toBeUndefined();
  });
});
