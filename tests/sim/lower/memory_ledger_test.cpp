// States by ZeRO stage, to the byte: Llama-3 8B on ranks of its own, without a cluster.
#include "sim/lower/memory_ledger.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "models/operators.hpp"
#include "sim/lower/pass_memory.hpp"
#include "tests/models/zoo.hpp"

namespace stagecraft {
namespace {

struct Job {
  TransformerSpec model = zoo::llama3_8b();
  ParallelSpec parallelism = {};
  TrainingSpec training = {.global_batch_size = 64, .sequence_length = 4096};
  OverlapSpec overlap = {};
  OptionsSpec options = {};
  OffloadSpec offload = {};
  int shard_group = 1;
  std::optional<int> micro_batches = {};  // absent: 64 over the replicas
  HardwareProfile profile = {};
};

// The ledger of a job: layers are divided evenly over a pipeline, and all of its ranks come back.
MemoryLedger ledger_of(const Job& job) {
  const int data = job.parallelism.data.value_or(1);
  const RankMesh alone({1, 1, 1, 1, 1}, job.parallelism.order);
  ParallelPlan plan{.tensor = job.parallelism.tensor,
                    .pipeline = job.parallelism.pipeline,
                    .data = data,
                    .virtual_stages = job.parallelism.virtual_stages,
                    .expert = job.parallelism.expert,
                    .expert_tensor = job.parallelism.expert_tensor,
                    .replicated_embedding = job.parallelism.replicated_embedding,
                    .shard_group = job.shard_group,
                    .micro_batches = job.micro_batches.value_or(64 / data),
                    .stages = {},
                    .mesh = alone,
                    .expert_mesh = alone};
  const int stages = plan.pipeline * plan.virtual_stages;
  const std::int64_t each = job.model.layers / stages;
  const bool full = job.training.recompute.granularity == Recompute::kFull;
  for (int stage = 0; stage < stages; ++stage) {
    const bool last = stage + 1 == stages;
    const LayerNumbers layers = job.model.layers_between(stage * each, (stage + 1) * each);
    plan.stages.push_back({.layers = layers,
                           .recomputed = full ? layers : LayerNumbers{},
                           .mtp_layers = last ? job.model.mtp_layers : 0,
                           .embedding = stage == 0,
                           .head = last});
  }
  PricingRequest request{.plan = plan,
                         .parallelism = job.parallelism,
                         .training = job.training,
                         .overlap = job.overlap,
                         .options = job.options,
                         .offload = job.offload};
  request.shard = shard_of(request, job.profile.memory.fp8_weight_copies(), false);
  const char* const order = plan.virtual_stages > 1 ? "interleaved-1f1b" : "1f1b";
  const Schedule schedule =
      generate(*find_schedule(order),
               {.ranks = plan.pipeline, .micro_batches = plan.micro_batches, .chunks = plan.virtual_stages});
  return transformer_ledger(job.model, {.job = request, .schedule = schedule, .profile = job.profile});
}

StageMemory memory_of(const Job& job) {
  return ledger_of(job).stages.front();
}

Bytes item_of(const StageMemory& stage, std::string_view name) {
  for (const MemoryItem& item : stage.items)
    if (item.name == name) return item.size;
  return Bytes(0);
}

Job zero(int stage, int data) {
  Job job;
  job.parallelism.zero_stage = stage;
  job.parallelism.data = job.shard_group = data;
  return job;
}

constexpr std::int64_t kParameters = 8'030'261'248;
constexpr std::int64_t kLayer = 218'112'000;      // 218,103,808 and two norms of 4,096
constexpr std::int64_t kWords = 128256LL * 4096;  // embedding or head
constexpr std::int64_t kBucket = 40'000'000;

// 2 + 4 + 12 bytes; / 8 in turn: optimizer, gradients and a bucket, weights and what is gathered.
TEST(Zero, ShardsOneKindOfStateAfterTheOther) {
  for (int stage = 0; stage <= 3; ++stage) {
    SCOPED_TRACE(stage);
    const StageMemory memory = memory_of(zero(stage, 8));
    EXPECT_EQ(memory.of(MemoryClass::kOptimizer), Bytes(12 * kParameters / (stage >= 1 ? 8 : 1)));
    EXPECT_EQ(item_of(memory, "gradients"), Bytes(4 * kParameters / (stage >= 2 ? 8 : 1)));
    EXPECT_EQ(item_of(memory, "weights"), Bytes(2 * kParameters / (stage >= 3 ? 8 : 1)));
    EXPECT_EQ(item_of(memory, "bucket"), Bytes(stage == 2 ? 4 * kBucket : 0));
  }
}

// The unit that computes and the next: the last layer and the head with its norm, or the words and a layer.
TEST(Zero, GathersTwoNeighboursOrOneWhereNothingIsGatheredBeside) {
  Job job = zero(3, 8);
  EXPECT_EQ(item_of(memory_of(job), "gathered units"), Bytes(2 * (kLayer + kWords + 4096)));
  EXPECT_EQ(item_of(memory_of(job), "gradients of a gathered unit"), Bytes(4 * (kWords + 4096)));
  job.overlap.parameters = false;
  EXPECT_EQ(item_of(memory_of(job), "gathered units"), Bytes(2 * (kWords + 4096)));
  job.options.reshard_after_forward = false;
  EXPECT_EQ(item_of(memory_of(job), "gathered units"), Bytes(2 * kParameters));
}

// What autograd saved of gathered weights, beside the two units that pass: all weights, but for recomputed layers.
TEST(Zero, MayKeepWhatItGatheredForTheBackward) {
  constexpr const char* kKept = "weights that autograd keeps";
  Job job = zero(3, 8);
  EXPECT_EQ(item_of(memory_of(job), kKept), Bytes(0));
  job.options.rules.memory.keeps_gathered = true;
  EXPECT_EQ(item_of(memory_of(job), kKept), Bytes(2 * kParameters));
  EXPECT_EQ(item_of(memory_of(job), "gathered units"), Bytes(2 * (kLayer + kWords + 4096)));
  job.training.recompute = {.granularity = Recompute::kFull};
  EXPECT_EQ(item_of(memory_of(job), kKept), Bytes(2 * (2 * kWords + 4096)));
  job.options.reshard_after_forward = false;  // then all of them stay gathered
  EXPECT_EQ(item_of(memory_of(job), kKept), Bytes(0));
}

// Matrix by matrix: the down projection of the last layer and the head, which comes with its norm.
TEST(Zero, OfMatricesGathersTwoOfThem) {
  Job job = zero(3, 8);
  job.options.rules.gathers_matrices = true;
  EXPECT_EQ(item_of(memory_of(job), "gathered units"), Bytes(2 * (14336LL * 4096 + kWords + 4096)));
  EXPECT_EQ(item_of(memory_of(job), "gradients of a gathered unit"), Bytes(4 * (kWords + 4096)));
  job.options.rules.memory.live_parameters = 14336LL * 4096 + 1;  // gate and up, and the head: each alone
  EXPECT_EQ(item_of(memory_of(job), "gathered units"), Bytes(2 * (14336LL * 4096 + kWords + 4096)));
  job.options.rules.memory.live_parameters = 14336LL * 4096;  // the down projection as well
  EXPECT_EQ(item_of(memory_of(job), "gathered units"), Bytes(2 * (kWords + 4096)));
  job.options.rules.memory.live_parameters = 0;
  job.overlap.parameters = false;
  job.parallelism.pipeline = 4;
  EXPECT_EQ(item_of(ledger_of(job).stages[1], "gathered units"), Bytes(2 * 2 * 14336LL * 4096));
  EXPECT_EQ(item_of(ledger_of(job).stages[1], "gradients of a gathered unit"), Bytes(4 * 2 * 14336LL * 4096));
}

// FSDP2: embedding, last norm and head are one unit, gathered first and kept; layers pass two at a time. The
// stream of the gathers has the root's block and a layer's, which count as reserved only.
TEST(FullyShard, KeepsItsRootAndTheBlocksOfItsGathers) {
  Job job = zero(3, 8);
  job.options.rules.memory.fully_shard = true;
  const Bytes root(2 * (2 * kWords + 4096));
  const StageMemory memory = memory_of(job);
  EXPECT_EQ(item_of(memory, "gathered units"), root + Bytes(2 * 2 * kLayer));
  EXPECT_EQ(item_of(memory, "blocks of other streams"), root + Bytes(2 * kLayer));
  EXPECT_EQ(memory.reserved() - memory.allocated(),
            item_of(memory, "fragmentation") + item_of(memory, "blocks of other streams"));
  job.overlap.parameters = false;
  EXPECT_EQ(item_of(memory_of(job), "gathered units"), root + Bytes(2 * kLayer));
  EXPECT_EQ(item_of(memory_of(zero(3, 8)), "blocks of other streams"), Bytes(0));
}

// Gradients of a layer are unsharded while the passes run. Those of the root, 2 bytes as they are made and 4 as they are
// reduced, come last: beyond what the passes let go of where these keep little, as those of one token of two layers do.
TEST(FullyShard, ReducesItsRootWhenTheActivationsAreGone) {
  Job job = zero(3, 8);
  job.options.rules.memory.fully_shard = true;
  EXPECT_EQ(item_of(memory_of(job), "gradients of a gathered unit"), Bytes(4 * kLayer));
  EXPECT_EQ(item_of(memory_of(job), "gradients of the root"), Bytes(0));
  job.training.sequence_length = 1;
  const Bytes beyond = item_of(memory_of(job), "gradients of the root");
  EXPECT_LT(beyond, Bytes(6 * (2 * kWords + 4096 - kLayer)));
  EXPECT_GT(beyond, Bytes(6 * (2 * kWords + 4096 - kLayer) - 100'000'000));
  job.model.tied_embeddings = true;  // one matrix, and the norm with it
  EXPECT_LT(item_of(memory_of(job), "gradients of the root"), Bytes(6 * (kWords + 4096 - kLayer)));
}

// Two tensor ranks with all rows of the embedding have half a matrix of words more, in every state.
TEST(ReplicatedEmbedding, IsHeldByEveryTensorRank) {
  Job job;
  job.parallelism.tensor = 2;
  const StageMemory split = memory_of(job);
  job.parallelism.replicated_embedding = true;
  const StageMemory whole = memory_of(job);
  EXPECT_EQ(item_of(whole, "weights") - item_of(split, "weights"), Bytes(2 * kWords / 2));
  EXPECT_EQ(item_of(whole, "gradients") - item_of(split, "gradients"), Bytes(4 * kWords / 2));
  EXPECT_EQ(item_of(whole, "optimizer") - item_of(split, "optimizer"), Bytes(12 * kWords / 2));
  job.parallelism.tensor = 1;
  const StageMemory alone = memory_of(job);
  job.parallelism.replicated_embedding = false;
  EXPECT_EQ(memory_of(job).items, alone.items);
}

// Megatron-FSDP gathers ahead until half of 10^9 parameters are on their way: three layers of 218 million. What
// no layer holds stays. Whole gradients are never more than without ZeRO, nor are weights.
// SHARD_GRAD_OP reduces unit by unit, on however many ranks; others fill a bucket, which is larger on more
// ranks, but with the shard never more than all gradients.
TEST(FullyShard, ReducesUnitsUnderZero2AsWell) {
  for (const int data : {64, 8192}) {
    Job job = zero(2, data);
    job.micro_batches = 2;
    const StageMemory bucket = memory_of(job);
    EXPECT_EQ(item_of(bucket, "gradients of a gathered unit"), Bytes(0));
    EXPECT_LE(bucket.of(MemoryClass::kGradients), memory_of(zero(0, 1)).of(MemoryClass::kGradients));
    job.options.rules.memory.fully_shard = job.options.rules.memory.fp32_shards = true;
    const StageMemory units = memory_of(job);
    EXPECT_EQ(item_of(units, "bucket"), Bytes(0));
    EXPECT_EQ(item_of(units, "gradients of a gathered unit"), Bytes(4 * (kWords + 4096))) << data;
  }
}

TEST(MegatronFsdp, KeepsItsRootAndGathersAhead) {
  Job job = zero(3, 8);
  job.options.rules.memory.communication_unit = 1'000'000'000;
  const Bytes root(2 * (2 * kWords + 4096));
  EXPECT_EQ(item_of(memory_of(job), "gathered units"), root + Bytes(2 * 4 * kLayer));
  EXPECT_EQ(item_of(memory_of(job), "gradients of a gathered unit"), Bytes(0));
  EXPECT_GT(item_of(memory_of(job), "gradients to be reduced"), Bytes(4 * kWords));
  job.options.rules.memory.communication_unit = 100'000'000'000;
  for (const int stage : {2, 3}) {
    job.parallelism.zero_stage = stage;
    const StageMemory memory = memory_of(job);
    EXPECT_LE(memory.of(MemoryClass::kGradients), Bytes(4 * kParameters));
    EXPECT_LE(memory.of(MemoryClass::kWeights), Bytes(2 * kParameters));
  }
}

// FSDP casts what it gathers from fp32 shards, which are the optimizer's own weights: no 16-bit shard beside
// them; weights that compute in fp32, and whole ones, stay, and those of a rank that shares with nobody.
TEST(Fp32Shards, LeaveNoSixteenBitShard) {
  Job job = zero(3, 8);
  EXPECT_EQ(item_of(memory_of(job), "weights"), Bytes(2 * kParameters / 8));
  job.options.rules.memory.fp32_shards = true;
  EXPECT_EQ(item_of(memory_of(job), "weights"), Bytes(0));
  EXPECT_EQ(item_of(memory_of(job), "optimizer"), Bytes(12 * kParameters / 8));
  job.training.precision = job.training.gradient = Precision::kFp32;
  EXPECT_EQ(item_of(memory_of(job), "weights"), Bytes(4 * kParameters / 8));
  job = zero(2, 8);
  job.options.rules.memory.fp32_shards = true;
  EXPECT_EQ(item_of(memory_of(job), "weights"), Bytes(2 * kParameters));
  job = zero(3, 1);
  job.options.rules.memory.fp32_shards = true;
  EXPECT_EQ(memory_of(job).items, memory_of(Job()).items);
}

// A byte for each of a layer's 218,103,808 weights and their transposes, once where products take either
// layout; words, norms and the head compute in 16 bit. The transposes of what ZeRO 3 gathers are kept;
// torchao casts in every pass.
TEST(Fp8, HasCopiesOfTheWeightsOfProducts) {
  Job job = zero(1, 8);
  EXPECT_EQ(item_of(memory_of(job), "fp8 copies of weights"), Bytes(0));
  job.training.precision = Precision::kFp8;
  EXPECT_EQ(item_of(memory_of(job), "fp8 copies of weights"), Bytes(2LL * 32 * 218'103'808));
  job.profile.memory.fp8_copies = {.value = 1};
  EXPECT_EQ(item_of(memory_of(job), "fp8 copies of weights"), Bytes(1LL * 32 * 218'103'808));
  job.options.fp8_recipe = Fp8Recipe::kMxfp8;  // rows and columns are two, with scales of 1/32
  EXPECT_EQ(item_of(memory_of(job), "fp8 copies of weights"), Bytes(33LL * 2 * 218'103'808));
  job.options.fp8_recipe = Fp8Recipe::kNvfp4;  // of half a byte, with scales of 1/16
  EXPECT_EQ(item_of(memory_of(job), "fp4 copies of weights"), Bytes(2LL * 9 * 2 * 218'103'808));
  EXPECT_EQ(item_of(memory_of(job), "fp8 copies of weights"), Bytes(0));
  job.options.fp8_recipe = Fp8Recipe::kTorchao;
  EXPECT_EQ(item_of(memory_of(job), "fp8 copies of weights"), Bytes(0));
  job = zero(3, 8);
  job.training.precision = Precision::kFp8;
  EXPECT_EQ(item_of(memory_of(job), "fp8 copies of weights"), Bytes(1LL * 32 * 218'103'808));
}

// Weights of products take one byte, which is one of the copies: the transpose is left where it is wanted.
// Words, norms and the head have two bytes. What is gathered has the same widths, and
// its transposes pass with it.
TEST(Fp8, ParametersAreOneOfTheCopies) {
  constexpr std::int64_t kProducts = 32LL * 218'103'808;
  Job job = zero(1, 8);
  job.options.fp8_parameters = true;
  EXPECT_EQ(item_of(memory_of(job), "weights"), Bytes(2 * kParameters));  // in bf16 it says nothing
  job.training.precision = Precision::kFp8;
  EXPECT_EQ(item_of(memory_of(job), "weights"), Bytes(2 * kParameters - kProducts));
  EXPECT_EQ(item_of(memory_of(job), "fp8 copies of weights"), Bytes(kProducts));
  job.profile.memory.fp8_copies = {.value = 1};
  EXPECT_EQ(item_of(memory_of(job), "fp8 copies of weights"), Bytes(0));
  job.options.fp8_recipe = Fp8Recipe::kNvfp4;  // 9/16 of a byte in place of two, and as much for the columns
  EXPECT_EQ(item_of(memory_of(job), "weights"), Bytes(2 * kParameters - kProducts / 16 * 23));
  EXPECT_EQ(item_of(memory_of(job), "fp4 copies of weights"), Bytes(kProducts / 16 * 9));
  job = zero(3, 8);
  job.options.fp8_parameters = true;
  job.training.precision = Precision::kFp8;
  EXPECT_EQ(item_of(memory_of(job), "weights"), Bytes((2 * kParameters - kProducts + 7) / 8));
  EXPECT_EQ(item_of(memory_of(job), "fp8 copies of weights"), Bytes(0));
  EXPECT_EQ(item_of(memory_of(job), "gathered units"),
            Bytes(2 * (kWords + 4096) + 2 * kLayer - kProducts / 32));
  job.options.reshard_after_forward = false;
  EXPECT_EQ(item_of(memory_of(job), "gathered units"), Bytes(2 * kParameters - kProducts));
}

// System: 32 layers in fp8, of which the first three and the last five stay in 16 bit.
// Expectations: copies of 24 layers' weights; activations of eight layers as in bf16.
TEST(Fp8, LeavesTheLayersThatStayInSixteenBitAsTheyWere) {
  Job job = zero(1, 8);
  const auto activations = [](const Job& any) {
    Bytes sum{};
    for (const MemoryItem& item : memory_of(any).items)
      if (item.kind == MemoryClass::kActivations) sum += item.size;
    return sum;
  };
  const Bytes sixteen = activations(job);
  job.training.precision = Precision::kFp8;
  const Bytes eight = activations(job);
  job.model.sixteen_bit = {.first = 3, .last = 5};
  EXPECT_EQ(item_of(memory_of(job), "fp8 copies of weights"), Bytes(2LL * 24 * 218'103'808));
  EXPECT_EQ(activations(job) - eight, (sixteen - eight) / 32 * 8);
  job.model.sixteen_bit = {.first = 0, .last = 32};
  EXPECT_EQ(activations(job), sixteen);
}

// The projection of a layer of multi-token prediction, [h, 2h], is a product like others.
TEST(Fp8, HasACopyOfTheProjectionOfAPrediction) {
  Job job;
  job.training.precision = Precision::kFp8;
  const Bytes without = item_of(memory_of(job), "fp8 copies of weights");
  job.model.mtp_layers = 1;
  EXPECT_EQ(item_of(memory_of(job), "fp8 copies of weights") - without,
            Bytes(2LL * (218'103'808 + 2 * 4096 * 4096)));
}

// Mixtral's experts over 8 ranks: one each. Its router stays in 16 bit.
TEST(Fp8, HasCopiesOfTheRanksOwnExperts) {
  Job job;
  job.model = zoo::mixtral_8x7b();
  job.parallelism.data = job.parallelism.expert = 8;
  job.training.precision = Precision::kFp8;
  const std::int64_t attention = 4096LL * (4096 + 2 * 1024) + 4096 * 4096, expert = 3LL * 4096 * 14336;
  EXPECT_EQ(item_of(memory_of(job), "fp8 copies of weights"), Bytes(2 * 32 * (attention + expert)));
}

// PyTorch's pipeline of 4 stages and 64 micro-batches: 2 T h bytes a message, from one side at the ends. Where
// outputs are kept the last stage has 16-bit logits, and joins them when the passes are over.
TEST(StepMessages, HaveABufferForEveryMicroBatchAndOutputsStayWhereTheyAreKept) {
  Job job;
  job.parallelism.pipeline = 4;
  const std::int64_t message = 2LL * 4096 * 4096, logits = 2LL * 4096 * 128256;
  EXPECT_EQ(item_of(ledger_of(job).stages[1], "messages between stages"), Bytes(4 * message));
  job.options.rules.memory.step_messages = true;
  for (const StageMemory& stage : ledger_of(job).stages) {
    EXPECT_EQ(item_of(stage, "outputs of the step"), Bytes(0));
    EXPECT_EQ(item_of(stage, "blocks of the step"), Bytes(0));
  }
  job.options.memory.keep_outputs = true;
  const MemoryLedger ledger = ledger_of(job);
  for (const StageMemory& stage : ledger.stages) {
    const bool last = stage.stage == 3, end = last || stage.stage == 0;
    EXPECT_EQ(item_of(stage, "messages between stages"), Bytes(2 * message));
    EXPECT_EQ(item_of(stage, "receive buffers of the step"), Bytes(64 * message * (end ? 1 : 2)));
    EXPECT_EQ(item_of(stage, "outputs of the step"), Bytes(64 * (last ? logits : message)));
    EXPECT_EQ(item_of(stage, "blocks of the step"), Bytes(last ? 64 * logits : 0));
    EXPECT_EQ(item_of(stage, "stage output"), Bytes(0));  // not counted twice
  }
  job.micro_batches = 2;
  EXPECT_EQ(item_of(ledger_of(job).stages[3], "blocks of the step"), Bytes(0));
  job.parallelism.pipeline = 1;
  EXPECT_EQ(item_of(memory_of(job), "outputs of the step"), Bytes(0));
}

// `out = model(...)` lives until the next one, while the loss and its gradients come and go: one matrix of 4096 x 128256
// logits more, in fp32 where the model casts them. A loss in chunks, and one that keeps the logits itself, add none.
TEST(KeptOutputs, AreTheLogitsWhereThereIsNoPipeline) {
  const Bytes logits(2LL * 4096 * 128256);
  Job job;
  const auto kept = [&] { return item_of(memory_of(job), "logits that the loop keeps"); };
  EXPECT_EQ(kept(), Bytes(0));
  const Bytes without = memory_of(job).allocated();
  job.options.memory.keep_outputs = true;
  EXPECT_EQ(kept(), logits);
  EXPECT_EQ(memory_of(job).allocated(), without + logits);
  job.options.memory.fp32_logits = true;
  EXPECT_EQ(kept(), 2 * logits);
  job.parallelism.tensor = 2;
  EXPECT_EQ(kept(), logits);
  job.options.memory.gathered_logits = true;
  EXPECT_EQ(kept(), 2 * logits);
  job.options.memory.loss_chunks = 8;
  EXPECT_EQ(kept(), Bytes(0));
  job.options.memory.loss_chunks = 1;
  job.options.memory.fused_loss = true;
  EXPECT_EQ(kept(), Bytes(0));
}

// fp16 gradients are stepped in fp32: a copy when the activations are gone; DeepSpeed without ZeRO has two.
TEST(Step, HasFp32CopiesOfSixteenBitGradients) {
  Job job = zero(0, 1);
  job.training.precision = job.training.gradient = Precision::kFp16;
  job.training.sequence_length = 1024;
  const StageMemory memory = memory_of(job);
  EXPECT_FALSE(memory.moment.action.has_value());
  EXPECT_EQ(memory.of(MemoryClass::kGradients), Bytes((2 + 4) * kParameters));
  constexpr auto kOf = static_cast<std::size_t>(MemoryClass::kGradients);
  EXPECT_EQ(memory.in_step[kOf], Bytes((2 + 4) * kParameters));
  EXPECT_EQ(memory.beside_passes[kOf], Bytes(2 * kParameters));  // passes do not see the copy
  job.options.memory.bucket_copies = true;
  EXPECT_EQ(memory_of(job).of(MemoryClass::kGradients), Bytes((2 + 4 + 4) * kParameters));
  job = zero(1, 8);
  job.training.precision = job.training.gradient = Precision::kFp16;
  job.options.memory.bucket_copies = true;
  job.training.sequence_length = 1024;
  EXPECT_LT(memory_of(job).of(MemoryClass::kGradients), Bytes((2 + 4) * kParameters));
}

// 5 % where there is room, what is left of a full card, and at least 2 %; what a scenario says is never less.
TEST(Fragmentation, GivesWayOnAFullCard) {
  Job job = zero(1, 8);
  job.profile.memory.fragmentation.value = 0.05;
  const StageMemory roomy = memory_of(job);
  const Bytes allocated = roomy.allocated();
  const auto on = [&](double share) {
    job.profile.device.memory = share_of(allocated, share);
    return item_of(memory_of(job), "fragmentation");
  };
  EXPECT_EQ(item_of(roomy, "fragmentation"), share_of(allocated, 0.05));
  EXPECT_EQ(on(1.2), share_of(allocated, 0.05));
  EXPECT_EQ(on(1.04), share_of(allocated, 1.04) - allocated);
  EXPECT_EQ(on(1.01), share_of(allocated, 0.02));
  job.options.memory.fragmentation = 0.05;
  EXPECT_EQ(on(1.01), share_of(allocated, 0.05));
}

// A foreach optimizer makes the square roots of the second moments that it steps.
TEST(Step, OfAForeachOptimizerHasOneMoreListOfTensors) {
  for (const int stage : {0, 1}) {
    SCOPED_TRACE(stage);
    Job job = zero(stage, 8);
    job.training.sequence_length = 128;
    job.options.memory.fused_loss = true;
    const Bytes plain = memory_of(job).in_step[static_cast<std::size_t>(MemoryClass::kOptimizer)];
    job.options.foreach_step = true;
    const StageMemory memory = memory_of(job);
    EXPECT_FALSE(memory.moment.action.has_value());
    EXPECT_EQ(memory.in_step[static_cast<std::size_t>(MemoryClass::kOptimizer)] - plain,
              Bytes(4 * kParameters / (stage == 1 ? 8 : 1)));
  }
}

Job fresh(Job job, int micro_batches) {
  job.options.rules.memory.fresh_gradients = true;
  job.micro_batches = micro_batches;
  return job;
}

Job accumulated(Job job, int micro_batches) {
  job.micro_batches = micro_batches;
  return job;
}

// Where the loss needs most, none of them is there yet; where the step does, all are.
TEST(FreshGradients, AreNotThereBeforeTheBackwardOfTheOnlyMicroBatch) {
  Job large = zero(0, 1);
  large.training.micro_batch_size = 4;
  const StageMemory with = memory_of(fresh(large, 1)), without = memory_of(accumulated(large, 1));
  ASSERT_TRUE(with.moment.action.has_value());
  EXPECT_EQ(with.of(MemoryClass::kGradients), Bytes(0));
  EXPECT_EQ(without.allocated() - with.allocated(), Bytes(4 * kParameters));
  constexpr auto kOf = static_cast<std::size_t>(MemoryClass::kGradients);
  EXPECT_EQ(with.beside_passes[kOf], Bytes(0));
  EXPECT_EQ(with.in_step[kOf], Bytes(4 * kParameters));
  Job small = zero(0, 1);
  small.training.sequence_length = 64;
  small.options.memory.fused_loss = true;
  EXPECT_EQ(memory_of(fresh(small, 1)).of(MemoryClass::kGradients), Bytes(4 * kParameters));
  EXPECT_EQ(memory_of(fresh(zero(0, 1), 2)).allocated(), memory_of(accumulated(zero(0, 1), 2)).allocated());
}

// They grow while activations shrink: never less than what either end needs, never more than both together.
TEST(FreshGradients, LieWhereActivationsWere) {
  for (const Recompute recompute : {Recompute::kNone, Recompute::kFull})
    for (const std::int64_t length : {512, 2048, 8192, 32768}) {
      SCOPED_TRACE(length);
      Job job = zero(0, 1);
      job.training.sequence_length = length;
      job.training.recompute.granularity = recompute;
      const Bytes states(14 * kParameters);
      const Bytes most = memory_of(accumulated(job, 1)).allocated(),
                  here = memory_of(fresh(job, 1)).allocated();
      EXPECT_LE(here, most);
      EXPECT_GE(here, most - Bytes(4 * kParameters));
      EXPECT_GE(here, states + Bytes(4 * kParameters));
    }
}

// FSDP's shards of gradients lie in memory of their own stream, where nothing else finds room: reserved all the time.
TEST(FreshGradients, OfFsdpAreReservedAllTheTime) {
  Job job = zero(3, 8);
  job.options.rules.memory.fp32_shards = true;
  for (const bool fully_shard : {false, true}) {
    SCOPED_TRACE(fully_shard);
    job.options.rules.memory.fully_shard = fully_shard;
    const StageMemory with = memory_of(fresh(job, 1)), without = memory_of(accumulated(job, 1));
    EXPECT_LT(with.allocated(), without.allocated());
    EXPECT_EQ(with.reserved(), without.reserved());
  }
}

// DDP reduces buckets beside the gradients; FSDP has none.
TEST(FreshGradients, OfReplicasHaveBuckets) {
  EXPECT_EQ(item_of(memory_of(fresh(zero(0, 8), 8)), "buckets"), Bytes(4 * kParameters));
  EXPECT_EQ(item_of(memory_of(accumulated(zero(0, 8), 8)), "buckets"), Bytes(0));
  EXPECT_EQ(item_of(memory_of(fresh(zero(0, 1), 8)), "buckets"), Bytes(0));
  EXPECT_EQ(item_of(memory_of(fresh(zero(3, 8), 8)), "buckets"), Bytes(0));
}

// One tensor of 16-bit gradients of the shard and one of their fp32 copies: no block that the activations
// leave holds either. Megatron-LM casts tensor by tensor.
TEST(Step, OfDeepSpeedJoinsGradientsBesideTheBlocksOfTheActivations) {
  Job job = zero(1, 8);
  job.training.precision = job.training.gradient = Precision::kFp16;
  EXPECT_EQ(item_of(memory_of(job), "blocks of the step"), Bytes(0));
  job.options.memory.bucket_copies = true;
  const StageMemory memory = memory_of(job);
  ASSERT_TRUE(memory.moment.action.has_value());
  EXPECT_EQ(item_of(memory, "blocks of the step"), Bytes((2 + 4) * kParameters / 8));
  EXPECT_EQ(memory.reserved() - memory.allocated(),
            item_of(memory, "fragmentation") + item_of(memory, "blocks of the step"));
  job.training.gradient = Precision::kFp32;
  EXPECT_EQ(item_of(memory_of(job), "blocks of the step"), Bytes(0));
}

// DeepSpeed's BF16_Optimizer: whole gradients in fp32, those of a micro-batch in 16 bit beside them, and to
// be reduced the first are cast as one tensor. Nobody reduces with one replica.
TEST(Step, OfDeepSpeedInBf16CastsWholeFp32GradientsBesideThoseOfAMicroBatch) {
  Job job = zero(1, 8);
  const StageMemory plain = memory_of(job);
  job.options.memory.bucket_copies = true;
  const StageMemory memory = memory_of(job);
  EXPECT_EQ(item_of(memory, "16-bit gradients"), Bytes(2 * kParameters));
  EXPECT_EQ(memory.of(MemoryClass::kGradients) - plain.of(MemoryClass::kGradients), Bytes(2 * kParameters));
  EXPECT_EQ(item_of(memory, "bucket"), Bytes(0));
  EXPECT_EQ(item_of(memory, "blocks of the step"), Bytes(2 * kParameters));
  job = zero(1, 1);
  job.options.memory.bucket_copies = true;
  EXPECT_EQ(item_of(memory_of(job), "16-bit gradients"), Bytes(2 * kParameters));
  EXPECT_EQ(item_of(memory_of(job), "blocks of the step"), Bytes(0));
  job = zero(2, 8);
  job.options.memory.bucket_copies = true;
  EXPECT_EQ(item_of(memory_of(job), "16-bit gradients"), Bytes(0));
}

// Without ZeRO the copies are cast tensor by tensor. Of a layer over 8 tensor ranks the largest tensor is an
// input of 4,096 x 4,096 at 16 bit; the gated product's copy alone is larger, and at the end the words'.
TEST(Step, OfDeepSpeedWithoutZeroFindsNoBlockForCopiesOfLargeMatrices) {
  Job job = zero(0, 1);
  job.training.precision = job.training.gradient = Precision::kFp16;
  job.parallelism.tensor = 8;
  job.parallelism.pipeline = 4;
  EXPECT_EQ(item_of(ledger_of(job).stages[1], "blocks of the step"), Bytes(0));
  job.options.memory.bucket_copies = true;
  const std::int64_t layer = (kLayer - 2 * 4096) / 8 + 2 * 4096, gated = 2LL * 14336 / 8 * 4096;
  const MemoryLedger ledger = ledger_of(job);
  ASSERT_TRUE(ledger.stages[1].moment.action.has_value());
  EXPECT_EQ(item_of(ledger.stages[1], "blocks of the step"), Bytes(8 * 4 * (layer + gated)));
  EXPECT_EQ(item_of(ledger.stages[0], "blocks of the step"), Bytes(8 * 4 * (layer + gated) + 8 * kWords / 8));
}

// FSDP2 under a pipeline: of two chunks a rank, each run by all micro-batches before the other, one has whole
// gradients at a time; with twice the micro-batches both have, as both have where they are on one stage.
TEST(WholeGradients, AreThereFromTheFirstBackwardOfTheirStageToTheLast) {
  const auto gradients = [](int chunks, int micro_batches) {
    Job job = zero(2, 8);
    job.parallelism.pipeline = 4;
    job.parallelism.virtual_stages = chunks;
    job.options.memory.whole_gradients = true;
    job.options.bucket_parameters = 1;
    job.micro_batches = micro_batches;
    return ledger_of(job).stages[1].of(MemoryClass::kGradients);
  };
  const Bytes bucket(4);
  EXPECT_EQ(gradients(1, 4), Bytes(8 * 4 * kLayer) + bucket);
  EXPECT_EQ(gradients(1, 8), Bytes(8 * 4 * kLayer) + bucket);
  EXPECT_EQ(gradients(2, 4), Bytes(4 * 4 * kLayer + 4 * 4 * kLayer / 8) + bucket);
  EXPECT_EQ(gradients(2, 8), Bytes(8 * 4 * kLayer) + bucket);
}

// Hybrid sharding: 32 ranks, groups of 8 share a copy.
TEST(Zero, ShardsOverItsGroupAndNotOverAllRanks) {
  Job job = zero(1, 32);
  job.shard_group = 8;
  EXPECT_EQ(memory_of(job).of(MemoryClass::kOptimizer), Bytes(12 * kParameters / 8));
}

// One replica, or groups of one.
TEST(Zero, ChangesNothingWhereNobodyShares) {
  for (const int variant : {0, 1, 2, 3, 4}) {
    for (const int data : {1, 8}) {
      Job job = zero(0, data);
      job.shard_group = 1;
      job.options.rules.memory.fp32_shards = variant == 1;
      job.options.rules.memory.fully_shard = variant == 2;
      job.options.memory.whole_gradients = variant == 2;
      job.options.rules.memory.communication_unit = variant == 3 ? 1'000'000'000 : 0;
      job.options.reshard_after_forward = variant != 4;
      const StageMemory alone = memory_of(job);
      for (int stage = 1; stage <= 3; ++stage) {
        job.parallelism.zero_stage = stage;
        EXPECT_EQ(memory_of(job).items, alone.items) << stage << " of " << data << ", " << variant;
      }
    }
  }
}

// Most of the model is in its root: with half of it in shards, the other half is all that comes beside.
TEST(Zero, HoldsNoMoreUnshardedGradientsThanThereAre) {
  Job job = zero(3, 2);
  job.model.layers = 1;
  job.options.rules.gathers_matrices = true;
  const std::int64_t parameters = 2 * kWords + kLayer + 4096;
  EXPECT_EQ(item_of(memory_of(job), "gradients of a gathered unit"), Bytes(4 * (kWords + 4096)));
  job.model.tied_embeddings = true;
  EXPECT_EQ(memory_of(job).of(MemoryClass::kGradients), Bytes(4 * (parameters - kWords)));
}

TEST(MegatronFsdp, HasNoQueueWhereGradientsStayWhole) {
  Job job = zero(3, 8);
  job.options.rules.memory.communication_unit = 1'000'000'000;
  job.options.memory.whole_gradients = true;
  EXPECT_EQ(memory_of(job).of(MemoryClass::kGradients), Bytes(4 * kParameters));
}

// Property: of many ranks, a higher stage never holds more, with several micro-batches in flight, in either
// recipe of fp8, and where the fp32 weights are what is sharded.
TEST(Zero, IsOrdered) {
  for (const int variant : {0, 1, 2, 3, 4, 5}) {
    const auto peak = [&](int stage, int data) {
      Job job = zero(stage, data);
      if (variant > 0) job.parallelism.pipeline = 4;
      if (variant > 1) job.training.precision = Precision::kFp8;
      if (variant == 3) job.options.fp8_recipe = Fp8Recipe::kTorchao;
      job.options.rules.memory.fp32_shards = variant == 4;
      job.options.fp8_parameters = variant == 5;
      return memory_of(job).peak();
    };
    for (const int data : {8, 16, 64}) {
      for (const int stage : {1, 2, 3})
        EXPECT_LT(peak(stage, data), peak(stage - 1, data)) << stage << " of " << data << ", " << variant;
    }
  }
}

// PyTorch's pipelines keep gathered weights and unsharded gradients until the step: then stage 3 is stage 2.
TEST(Zero, IsOrderedWherePipelinesKeepAllUntilTheStep) {
  const auto peak = [](int stage) {
    Job job = zero(stage, 8);
    job.parallelism.pipeline = 4;
    job.options.memory.whole_gradients = true;
    job.options.reshard_after_forward = false;
    job.options.rules.memory.fp32_shards = true;
    return memory_of(job).peak();
  };
  EXPECT_LE(peak(3), peak(2));
}

// Property: ranks of a tensor group hold the model once but for what every rank has: norms.
TEST(Weights, OfATensorGroupAddUpToTheModel) {
  for (int tensor : {1, 2, 4, 8}) {
    Job job;
    job.parallelism.tensor = tensor;
    const std::int64_t norms = 65 * 4096;
    EXPECT_EQ(memory_of(job).of(MemoryClass::kWeights) * tensor,
              Bytes(2 * (kParameters + (tensor - 1) * norms)));
  }
}

// The words' two layers stay behind: what is on its way while the rest of the weights is in host memory.
TEST(Offload, LeavesOutItsShares) {
  Job job;
  job.offload.optimizer = 0.5;
  EXPECT_EQ(memory_of(job).of(MemoryClass::kOptimizer), Bytes(6 * kParameters));
  job.offload.weights = 1;
  EXPECT_EQ(item_of(memory_of(job), "weights"), Bytes(0));
  EXPECT_EQ(item_of(memory_of(job), "units from the host"), Bytes(2 * 2 * (kWords + 4096)));
}

// The optimizer's 12 bytes and the fp32 gradient that the host steps with; under ZeRO 1 the rank's shard.
TEST(Offload, PutsThemIntoTheMemoryOfTheNode) {
  Job job;
  EXPECT_EQ(memory_of(job).on_host, Bytes(0));
  job.offload.weights = 1;
  EXPECT_EQ(memory_of(job).on_host, Bytes(2 * kParameters));
  job.offload = {.optimizer = 0.5};
  EXPECT_EQ(memory_of(job).on_host, Bytes(8 * kParameters));
  job = zero(1, 8);
  job.offload.optimizer = 1;
  EXPECT_EQ(memory_of(job).on_host, Bytes(2 * kParameters));
}

// What others got wrong (NVIDIA-NeMo/Megatron-Bridge#3744: experts divided by tensor instead of expert_tensor
// x expert). System: 8 ranks, tensor 2, expert 4, expert_tensor 2: a rank holds half of two of eight experts.
TEST(Experts, AreDividedByTheirOwnDegreesAndNotByTensor) {
  Job job;
  job.model = zoo::mixtral_8x7b();
  job.parallelism = {.tensor = 2, .data = 4, .expert = 4, .expert_tensor = 2, .sequence_parallel = true};
  const std::int64_t expert = 3LL * 4096 * 14336;
  EXPECT_EQ(item_of(memory_of(job), "experts' weights"), Bytes(2 * 32 * 2 * expert / 2));
  job.parallelism.expert_tensor = 1;
  EXPECT_EQ(item_of(memory_of(job), "experts' weights"), Bytes(2 * 32 * 2 * expert));
}

// System: 8 data ranks, expert 8: every expert lives once, so its optimizer has nobody to share with, while
// the dense weights' is split 8 ways.
TEST(Experts, ShareTheirOptimizerWithTheRanksThatHoldTheSameExperts) {
  Job job = zero(1, 8);
  job.model = zoo::mixtral_8x7b();
  job.parallelism.expert = 8;
  const std::int64_t experts = 32 * 3LL * 4096 * 14336;  // one expert a layer
  const std::int64_t dense = parameter_count(job.model) - 8 * experts;
  EXPECT_EQ(item_of(memory_of(job), "experts' optimizer"), Bytes(12 * experts));
  EXPECT_EQ(item_of(memory_of(job), "optimizer"), Bytes(12 * dense / 8));
  job.parallelism.expert = 4;  // two ranks hold each
  EXPECT_EQ(item_of(memory_of(job), "experts' optimizer"), Bytes(12 * 2 * experts / 2));
}

// System: 8 tensor ranks of one replica, which hold two halves of the experts four times. ZeRO 3 shards the
// experts four ways and gathers the weights of a layer and of its neighbour.
TEST(Experts, AreShardedWhereTheDenseWeightsHaveOneReplica) {
  Job job;
  job.model = zoo::mixtral_8x7b();
  job.parallelism = {.tensor = 8, .data = 1, .expert = 2, .sequence_parallel = true, .zero_stage = 3};
  const std::int64_t experts = 4 * 3LL * 4096 * 14336;  // of a layer
  const StageMemory memory = memory_of(job);
  EXPECT_EQ(item_of(memory, "experts' weights"), Bytes(2 * 32 * experts / 4));
  EXPECT_GT(item_of(memory, "gathered units"), Bytes(2 * 2 * experts));
  EXPECT_GT(item_of(memory, "gradients of a gathered unit"), Bytes(4 * experts));
  job.parallelism.expert = 8;  // every expert lives once
  EXPECT_EQ(item_of(memory_of(job), "gathered units"), Bytes(0));
  EXPECT_EQ(item_of(memory_of(job), "gradients of a gathered unit"), Bytes(0));
}

// The experts' replicas are a group of their own where they are not those of the dense weights.
TEST(Experts, HaveACommunicatorForTheirReplicas) {
  Job job;
  job.model = zoo::mixtral_8x7b();
  job.profile.memory.communicators.value = Bytes(1);
  job.parallelism = {.tensor = 2, .data = 4, .expert_tensor = 2, .sequence_parallel = true};
  const auto communicators = [&] { return item_of(memory_of(job), "NCCL communicators"); };
  EXPECT_EQ(communicators(), Bytes(3));  // tensor, data, expert_tensor
  job.parallelism.expert_tensor = 1;
  EXPECT_EQ(communicators(), Bytes(3));  // tensor, data, replicas of experts
  job.parallelism.expert = 4;
  EXPECT_EQ(communicators(), Bytes(4));
}

// NVIDIA/Megatron-LM#1784: activations of experts priced as a dense block. Two experts a token are twice the
// rows of one, each with the experts' width.
TEST(Experts, KeepTheRowsOfEveryChoice) {
  const auto kept = [](std::int64_t top_k) {
    Job job = zero(0, 1);
    job.model = zoo::mixtral_8x7b();
    job.model.experts->top_k = top_k;
    const StageMemory memory = memory_of(job);
    return item_of(memory, "received tokens") + item_of(memory, "expert up output") +
           item_of(memory, "expert down input");
  };
  EXPECT_EQ(kept(1), Bytes(32 * 2 * 4096LL * (4096 + 3 * 14336)));
  EXPECT_EQ(kept(2), 2 * kept(1));
}

// Multi-token prediction is a layer more, with its own norms and projection, and shares words and head.
TEST(Weights, CountMultiTokenPrediction) {
  Job job;
  job.model = zoo::deepseek_v3();
  EXPECT_EQ(memory_of(job).of(MemoryClass::kWeights), Bytes(2 * parameter_count(job.model)));
}

}  // namespace
}  // namespace stagecraft
