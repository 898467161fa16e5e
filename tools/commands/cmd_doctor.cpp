#include <fmt/format.h>

#include <ostream>
#include <string>

#include "base/json.hpp"
#include "base/text.hpp"
#include "calibrate/profile/hardware_profile.hpp"
#include "sim/scenario/load_software.hpp"
#include "sim/scenario/preset.hpp"
#include "tools/command_line/scenarios.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/schedule_lab.hpp"

namespace stagecraft {
namespace {

#ifdef __clang__
constexpr std::string_view kCompiler = __VERSION__;  // "Clang 14.0.6"
#else
constexpr std::string_view kCompiler = "g++ " __VERSION__;
#endif

struct Found {
  std::string_view what;
  std::vector<std::string> names;
};

std::vector<std::string> names_of(const Session& session, PresetKind kind) {
  return session.no_data ? std::vector<std::string>() : session.data.names(std::string(kind.folder));
}

std::vector<Found> installed(const Session& session) {
  std::vector<Found> all = {{"scenarios", {}}};
  if (!session.no_data) all.front().names = installed_scenarios(session.data);
  for (const auto& [what, kind] : {std::pair{"models", kModelPreset},
                                   {"nodes", kNodePreset},
                                   {"fabrics", kFabricPreset},
                                   {"software", kSoftwarePreset}})
    all.push_back({what, names_of(session, kind)});
  return all;
}

std::string wrapped(const std::vector<std::string>& names) {
  std::string out, row;
  for (const std::string& name : names) {
    if (row.size() + name.size() > 66) {
      out += (out.empty() ? "" : "             ") + row + "\n";
      row.clear();
    }
    row += (row.empty() ? "" : "  ") + name;
  }
  return out + (out.empty() ? "" : "             ") + row + "\n";
}

void print_text(Session& session, const std::vector<Found>& found,
                const std::vector<HardwareProfile>& profiles) {
  session.out << "stagecraft   " STAGECRAFT_VERSION ", " << STAGECRAFT_BUILD << ", " << kCompiler << '\n';
  session.out << "data         "
              << (session.no_data ? session.no_data->message : session.data.root.lexically_normal().string())
              << '\n';
  session.out << "schedules    " << wrapped(schedule_names());
  for (const Found& item : found) session.out << fmt::format("{:<12} ", item.what) << wrapped(item.names);
  for (const HardwareProfile& profile : profiles) {
    session.out << fmt::format("profile      {}: {}, {} GEMM shapes, {} collective curves\n",
                               dated_name(profile), profile.device.name, profile.gemm.table.rows.size(),
                               profile.collectives.size());
  }
  session.out << "calibration  the GPU suite is not built into this program\n";
}

void print_json(Session& session, const std::vector<Found>& found,
                const std::vector<HardwareProfile>& profiles) {
  JsonWriter json;
  json.begin_object().field("schema", "stagecraft.doctor/1").field("version", STAGECRAFT_VERSION);
  json.field("build", STAGECRAFT_BUILD);
  for (const Found& item : found) json.field(item.what, item.names);
  json.key("profiles").begin_array();
  for (const HardwareProfile& profile : profiles) {
    json.begin_object().field("name", profile.name).field("date", profile.date);
    json.field("device", profile.device.name).end_object();
  }
  session.out << json.end_array().end_object().str() << '\n';
}

}  // namespace

int doctor_command(const Arguments& arguments, Session& session) {
  if (!arguments.words().empty()) throw UsageError("`doctor` takes no names", "stagecraft doctor");
  const std::vector<Found> found = installed(session);
  Diagnostics diagnostics;
  if (session.no_data) diagnostics.error(*session.no_data);
  std::vector<HardwareProfile> profiles;
  for (const std::string& name : names_of(session, kProfilePreset)) {
    const auto file = session.data.root / kProfilePreset.folder / (name + ".yaml");
    if (std::optional<HardwareProfile> profile = load_profile(file, diagnostics))
      profiles.push_back(*std::move(profile));
  }
  arguments.has("json") ? print_json(session, found, profiles) : print_text(session, found, profiles);
  print_diagnostics(diagnostics.sorted(), arguments, session);
  return diagnostics.has_errors() ? kWrongInput : kDone;
}

}  // namespace stagecraft
