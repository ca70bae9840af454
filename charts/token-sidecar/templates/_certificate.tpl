{{/*
A serving certificate by cert-manager in the component's Secret, of the issuer that is named or of a CA of its own.
Arguments: root, component, dnsNames, settings.
*/}}
{{- define "token-sidecar.certManagerCertificate" -}}
{{- $fullname := include (printf "token-sidecar.%s.fullname" .component) .root }}
{{- $namespace := include "token-sidecar.namespace" .root }}
{{- $labels := include "token-sidecar.labels" (pick . "root" "component") }}
{{- $secretName := include (printf "token-sidecar.%s.certificateSecret" .component) .root }}
{{- $issuerRef := .settings.issuerRef }}
{{- if not $issuerRef }}
{{- $issuerRef = dict "kind" "Issuer" "name" (printf "%s-ca" $fullname) }}
apiVersion: cert-manager.io/v1
kind: Issuer
metadata:
  name: {{ $fullname }}-self-signed
  namespace: {{ toYaml $namespace }}
  labels:
    {{- $labels | nindent 4 }}
spec:
  selfSigned: {}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  name: {{ $fullname }}-ca
  namespace: {{ toYaml $namespace }}
  labels:
    {{- $labels | nindent 4 }}
spec:
  isCA: true
  commonName: {{ printf "%s-ca" $fullname | trunc 64 }}
  secretName: {{ $fullname }}-ca
  {{- /* Ten years, and the same key when it is renewed: callers keep the CA that they were given. */}}
  duration: 87600h
  privateKey:
    rotationPolicy: Never
    algorithm: ECDSA
    size: 256
  issuerRef:
    group: cert-manager.io
    kind: Issuer
    name: {{ $fullname }}-self-signed
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata:
  name: {{ $fullname }}-ca
  namespace: {{ toYaml $namespace }}
  labels:
    {{- $labels | nindent 4 }}
spec:
  ca:
    secretName: {{ $fullname }}-ca
---
{{- end }}
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  name: {{ $secretName }}
  namespace: {{ toYaml $namespace }}
  labels:
    {{- $labels | nindent 4 }}
spec:
  secretName: {{ toYaml $secretName }}
  dnsNames:
    {{- toYaml .dnsNames | nindent 4 }}
  usages:
    - server auth
  duration: {{ .settings.duration }}
  renewBefore: {{ .settings.renewBefore }}
  privateKey:
    algorithm: ECDSA
    size: 256
    rotationPolicy: Always
  issuerRef:
    group: {{ default "cert-manager.io" $issuerRef.group }}
    kind: {{ default "Issuer" $issuerRef.kind }}
    name: {{ toYaml $issuerRef.name }}
{{- end -}}
