// SPDX-License-Identifier: MIT
// push_server.js - stands in for Parca and Pyroscope: a gRPC and a Connect server made from the
// interfaces with the libraries that everybody uses (@grpc/grpc-js, @connectrpc/connect-node).
//
//	node push_server.js parca|pyroscope PORT OUT [--delay MS] [--fail SPEC] [--token T]
//		[--key FILE --cert FILE] [--proto FILE] [--descriptors FILE] [--brief yes]
//		[--debuginfo PROTO --uploads DIR [--signed yes] [--fail-call CALL:CODE,... --fail-id ID]]
//
// PORT 0: any; the port is on the first line of stdout. Each request that arrives is a line of JSON
// in OUT: its headers, and of each series the labels and the profile's sums, as npm's pprof-format
// decodes it.
// --fail "code:N,..." answers the first requests with these codes ("-" for success), the last one
// of them from then on when it ends in "*".
// --brief: profiles are not decoded, which takes longer than they take to make.
// --debuginfo: the service that takes debug information, too; files go into DIR, which also says what
// it has after a restart. --signed: it wants them by PUT. Its calls are lines of JSON in OUT as well.
'use strict';
const fs = require('fs');
const zlib = require('zlib');
const path = require('path');
const { Profile } = require('pprof-format');

const [, , kind, portArg, out, ...rest] = process.argv;
const opts = {};
for (let i = 0; i < rest.length; i += 2) opts[rest[i].replace(/^--/, '')] = rest[i + 1];
const delay = Number(opts.delay || 0);
const fails = (opts.fail || '').split(',').filter(Boolean);
let seen = 0;

// The code that this request is to be answered with: undefined for success.
function nextFailure() {
  const spec = fails[Math.min(seen++, fails.length - 1)];
  const past = seen > fails.length && !(spec || '').endsWith('*');
  if (!spec || past || spec === '-') return undefined;
  return spec.replace('*', '');
}

function describe(labels, raw) {
  if (opts.brief) return { bytes: zlib.gunzipSync(raw).length };
  const profile = Profile.decode(zlib.gunzipSync(raw));
  const text = (i) => profile.stringTable.strings[Number(i)];
  const sums = profile.sampleType.map(() => 0);
  const byLabel = {};
  for (const sample of profile.sample) {
    sample.value.forEach((v, i) => { sums[i] += Number(v); });
    const key = sample.label.map((l) => `${text(l.key)}=${text(l.str)}`).sort().join(',');
    byLabel[key] = (byLabel[key] || 0) + Number(sample.value[sample.value.length - 1]);
  }
  return {
    labels: Object.fromEntries(labels.map((l) => [l.name, l.value])),
    types: profile.sampleType.map((t) => `${text(t.type)}/${text(t.unit)}`),
    rows: profile.sample.length,
    sums,
    byLabel,
    bare: profile.location.filter((l) => l.line.length === 0).length,
    deepest: Math.max(0, ...profile.sample.map((s) => s.locationId.length)),
    functions: profile.function.map((f) => text(f.name)).slice(0, 20),
    bytes: zlib.gunzipSync(raw).length,
    comments: profile.comment.length,
  };
}

function record(headers, series, failure) {
  fs.appendFileSync(out, JSON.stringify({ headers, failure, series }) + '\n');
}

// The next planted failure of this call.
const callFails = (opts['fail-call'] || '').split(',').filter(Boolean).map((f) => f.split(':'));
function nextCallFailure(name, id) {
  if (id !== opts['fail-id']) return undefined;
  if (!callFails.length || callFails[0][0] !== name) return undefined;
  return callFails.shift()[1];
}

// As Parca's: what is asked for has an upload that was begun and finished, or is wanted.
function debuginfoCalls(grpc, putAddress) {
  const states = {}; // build id -> { id, hash, size, done }
  const stored = (id) => path.join(opts.uploads, id);
  const isHeld = (id) => fs.existsSync(stored(id)) && !(states[id] && !states[id].done);
  const log = (call, request, more) => fs.appendFileSync(out, JSON.stringify({
    call, build_id: request.build_id, force: request.force, ...more }) + '\n');
  const answer = (name, fn) => (call, callback) => {
    const failure = nextCallFailure(name, call.request.build_id);
    log(name, call.request, { failure, authorization: call.metadata.getMap().authorization });
    if (failure) callback({ code: grpc.status[failure], details: `planted ${failure}` });
    else fn(call.request, callback);
  };
  const refuse = (callback, code, details) => callback({ code: grpc.status[code], details });
  const isWanted = (r) => r.force || (!isHeld(r.build_id) && !states[r.build_id]);
  return {
    ShouldInitiateUpload: answer('ShouldInitiateUpload', (r, callback) => {
      callback(null, { should_initiate_upload: isWanted(r), reason: 'because' });
    }),
    InitiateUpload: answer('InitiateUpload', (r, callback) => {
      if (!r.hash || !Number(r.size)) refuse(callback, 'INVALID_ARGUMENT', 'hash and size');
      else if (!isWanted(r)) refuse(callback, 'FAILED_PRECONDITION', 'not wanted');
      else {
        const id = `upload-${Object.keys(states).length}`;
        states[r.build_id] = { id, hash: r.hash, size: Number(r.size), done: false };
        callback(null, { upload_instructions: {
          build_id: r.build_id,
          upload_id: id,
          upload_strategy: opts.signed ? 'UPLOAD_STRATEGY_SIGNED_URL' : 'UPLOAD_STRATEGY_GRPC',
          signed_url: opts.signed ? `${putAddress()}/${r.build_id}?signature=x` : '',
        } });
      }
    }),
    Upload(call, callback) {
      let info; let bytes = 0; let chunks = 0;
      const parts = [];
      call.on('data', (m) => {
        if (m.info) { info = m.info; return; }
        chunks += 1;
        bytes += m.chunk_data.length;
        parts.push(m.chunk_data);
      });
      call.on('end', () => {
        const failure = nextCallFailure('Upload', info.build_id);
        const state = states[info.build_id];
        log('Upload', info, { failure, bytes, chunks, authorization: call.metadata.getMap().authorization });
        if (failure) refuse(callback, failure, `planted ${failure}`);
        else if (!state || state.id !== info.upload_id) refuse(callback, 'INVALID_ARGUMENT', 'no such upload');
        else {
          fs.writeFileSync(stored(info.build_id), Buffer.concat(parts));
          callback(null, { build_id: info.build_id, size: bytes });
        }
      });
    },
    MarkUploadFinished: answer('MarkUploadFinished', (r, callback) => {
      const state = states[r.build_id];
      if (!state || state.id !== r.upload_id) refuse(callback, 'NOT_FOUND', 'no such upload');
      else if (!fs.existsSync(stored(r.build_id)) ||
               fs.statSync(stored(r.build_id)).size !== state.size) {
        refuse(callback, 'INVALID_ARGUMENT', 'the size is not that announced');
      } else {
        state.done = true;
        callback(null, {});
      }
    }),
  };
}

// Stands in for an object store.
function startPuts() {
  const server = require('http').createServer((request, response) => {
    const parts = [];
    request.on('data', (d) => parts.push(d));
    request.on('end', () => {
      const id = path.basename(request.url.split('?')[0]);
      const body = Buffer.concat(parts);
      fs.appendFileSync(out, JSON.stringify({ call: request.method, build_id: id,
        bytes: body.length, headers: request.headers }) + '\n');
      fs.writeFileSync(path.join(opts.uploads, id), body);
      response.end();
    });
  });
  server.listen(0, '127.0.0.1');
  return () => `http://127.0.0.1:${server.address().port}`;
}

function startParca() {
  const grpc = require('@grpc/grpc-js');
  const loader = require('@grpc/proto-loader');
  const definition = loader.loadSync(opts.proto, { keepCase: true });
  const { ProfileStoreService } = grpc.loadPackageDefinition(definition).parca.profilestore.v1alpha1;
  const server = new grpc.Server({ 'grpc.max_receive_message_length': 64 << 20 });
  server.addService(ProfileStoreService.service, {
    WriteRaw(call, callback) {
      const headers = call.metadata.getMap();
      const failure = nextFailure();
      const series = call.request.series.map((s) => {
        if (s.samples.length !== 1) throw new Error('not one sample');
        return describe(s.labels.labels, s.samples[0].raw_profile);
      });
      setTimeout(() => {
        if (opts.token && headers.authorization !== `Bearer ${opts.token}`) {
          record(headers, [], 'UNAUTHENTICATED');
          callback({ code: grpc.status.UNAUTHENTICATED, details: 'a "token" is wänted: 100 %' });
          return;
        }
        record(headers, series, failure);
        if (failure) callback({ code: grpc.status[failure], details: `planted ${failure}` });
        else callback(null, {});
      }, delay);
    },
  });
  if (opts.debuginfo) {
    const debuginfo = grpc.loadPackageDefinition(
      loader.loadSync(opts.debuginfo, { keepCase: true, longs: String }));
    server.addService(debuginfo.parca.debuginfo.v1alpha1.DebuginfoService.service,
      debuginfoCalls(grpc, opts.signed ? startPuts() : undefined));
  }
  const credentials = opts.key
    ? grpc.ServerCredentials.createSsl(null, [
      { private_key: fs.readFileSync(opts.key), cert_chain: fs.readFileSync(opts.cert) }])
    : grpc.ServerCredentials.createInsecure();
  server.bindAsync(`127.0.0.1:${portArg}`, credentials, (err, port) => {
    if (err) throw err;
    console.log(port);
  });
}

function startPyroscope() {
  const { fromBinary, createFileRegistry } = require('@bufbuild/protobuf');
  const { FileDescriptorSetSchema } = require('@bufbuild/protobuf/wkt');
  const { ConnectError, Code } = require('@connectrpc/connect');
  const { connectNodeAdapter } = require('@connectrpc/connect-node');
  const files = fromBinary(FileDescriptorSetSchema, fs.readFileSync(opts.descriptors));
  const service = createFileRegistry(files).getService('push.v1.PusherService');
  const routes = (router) => router.service(service, {
    async push(request, context) {
      const headers = Object.fromEntries(context.requestHeader.entries());
      const failure = nextFailure();
      const series = request.series.map((s) => describe(s.labels, s.samples[0].rawProfile));
      await new Promise((resolve) => { setTimeout(resolve, delay); });
      record(headers, series, failure);
      if (failure) throw new ConnectError(`planted ${failure}`, Code[failure]);
      return {};
    },
  });
  const handler = connectNodeAdapter({ routes, readMaxBytes: 64 << 20 });
  const http = opts.key
    ? require('https').createServer(
      { key: fs.readFileSync(opts.key), cert: fs.readFileSync(opts.cert) }, handler)
    : require('http').createServer(handler);
  http.listen(Number(portArg), '127.0.0.1', () => console.log(http.address().port));
}

if (kind === 'parca') startParca();
else startPyroscope();
